"""Sizes of packages, beside one another: modules, lines of code, uses of `Any`.

    python -m tools.structure jaxsim evaluation path/to/site-packages/brax

Lines of code are those with anything but comments and docstrings. Nothing is imported, so that a
package needs none of its dependencies.
"""

import argparse
import ast
import io
import re
import statistics
import tokenize
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tools.islands import NONE, table

HEAD = ("package", "modules", "code lines", "largest", "median", "`Any` in 100", "classes twice")
NO_CODE = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
}
TESTS = re.compile(r"(^|_)tests?(_|$)")


@dataclass(frozen=True)
class Module:
    """What counts in one file.

    Attributes:
      lines: of code.
      uses_of_any: the name `Any` or an attribute of that name, outside of imports.
      classes: names of the classes at its top level.
    """

    lines: int
    uses_of_any: int
    classes: frozenset[str]

    @classmethod
    def of(cls, source: str) -> "Module":
        """Count in a module's source."""
        nodes = list(ast.walk(tree := ast.parse(source)))
        lines: set[int] = set()
        for token in tokenize.generate_tokens(io.StringIO(source).readline):
            if token.type not in NO_CODE:
                lines.update(range(token.start[0], token.end[0] + 1))
        return cls(
            len(lines.difference(*(_docstring(node) for node in nodes))),
            sum(getattr(node, "id", getattr(node, "attr", "")) == "Any" for node in nodes),
            frozenset(node.name for node in tree.body if isinstance(node, ast.ClassDef)),
        )


def _docstring(node: ast.AST) -> range:
    """Lines of the docstring of a module, class or function; none without one."""
    match node:
        case (
            ast.Module(body=[ast.Expr(value=ast.Constant(value=str())) as text, *_])
            | ast.ClassDef(body=[ast.Expr(value=ast.Constant(value=str())) as text, *_])
            | ast.FunctionDef(body=[ast.Expr(value=ast.Constant(value=str())) as text, *_])
            | ast.AsyncFunctionDef(body=[ast.Expr(value=ast.Constant(value=str())) as text, *_])
        ):
            return range(text.lineno, (text.end_lineno or text.lineno) + 1)
    return range(0)


def modules(package: Path) -> Iterator[Module]:
    """Every module of a package that holds code, but for its tests.

    Raises:
      SystemExit: the folder does not exist or has no code.
    """
    paths = [
        path
        for path in sorted(package.rglob("*.py"))
        if not any(TESTS.search(part) for part in path.relative_to(package).with_suffix("").parts)
    ]
    counted = [Module.of(path.read_text(encoding="utf-8")) for path in paths]
    if not any(module.lines for module in counted):
        raise SystemExit(f"{package} is not a folder with Python code")
    yield from (module for module in counted if module.lines)


def row(package: Path) -> tuple[object, ...]:
    """Cells of a package, in the order of `HEAD`."""
    counted = list(modules(package))
    sizes = [module.lines for module in counted]
    names = [name for module in counted for name in module.classes]
    return (
        package.name,
        len(sizes),
        f"{sum(sizes):,}",
        max(sizes),
        f"{statistics.median(sizes):.0f}",
        f"{100 * sum(module.uses_of_any for module in counted) / sum(sizes):.1f}",
        len({name for name in names if names.count(name) > 1}) or NONE,
    )


def main(argv: Sequence[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m tools.structure", description=__doc__)
    parser.add_argument("packages", nargs="+", type=Path, help="folders of packages")
    print("\n".join(table(HEAD, [row(package) for package in parser.parse_args(argv).packages])))


if __name__ == "__main__":
    main()
