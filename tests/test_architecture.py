"""Which package may import what, read from the source."""

import ast
import functools
import pkgutil
import re
from collections.abc import Iterator
from graphlib import TopologicalSorter
from itertools import takewhile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = ("jaxsim", "evaluation", "benchmarks", "tools")

# What reaches out of the process, or depends on when and where it runs.
OUTSIDE = {
    "asyncio",
    "datetime",
    "fileinput",
    "glob",
    "http",
    "io",
    "multiprocessing",
    "os",
    "pathlib",
    "random",
    "secrets",
    "shutil",
    "signal",
    "socket",
    "sqlite3",
    "subprocess",
    "sys",
    "tempfile",
    "threading",
    "time",
    "urllib",
}
OUTSIDE_CALLS = {"open", "input", "print", "exec", "eval"}

FRONT_DOORS = {"l2m", "sailon", "sciencebirds", "gvgai", "grader", "train", "evaluate"}
NAMES_OF_OTHERS = {"shims"}
EDGE = {
    "agents",
    "arguments",
    "bench",
    "cache",
    "checkpoints",
    "cli",
    "files",
    "logs",
    "memory",
    "records",
    "report",
    "sweep",
    "view",
}
RULES = "Who may import whom"  # heading of their table on the page
MAY_TOUCH_FILES = EDGE | FRONT_DOORS | NAMES_OF_OTHERS


def modules(package: str) -> list[Path]:
    return sorted((ROOT / package).rglob("*.py"))


# Loops that an import inside a function closes. `jaxsim.agents.get` finds learners by name, as it
# does all agents, and learners use the contract, leans and sight of `jaxsim.agents`. Without it,
# optax would be loaded for agents that do not learn.
DEFERRED = {("jaxsim.agents", "jaxsim.training")}


def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@functools.cache
def imports(path: Path) -> tuple[tuple[str, int], ...]:
    """Absolute names of everything a file imports, wherever in it, with the line."""
    names = []
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Import):
            names += [(alias.name, node.lineno) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno} imports relatively"
            names += [(f"{node.module}.{alias.name}", node.lineno) for alias in node.names]
    return tuple(names)


def calls(path: Path) -> Iterator[tuple[str, int]]:
    """Names that a file calls directly."""
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            yield node.func.id, node.lineno


def importing(paths: list[Path], *prefixes: str) -> list[str]:
    """Places in `paths` that import one of the modules, or something inside it."""
    return [
        f"{path.relative_to(ROOT)}:{line} imports {name}"
        for path in paths
        for name, line in imports(path)
        if any(name == prefix or name.startswith(f"{prefix}.") for prefix in prefixes)
    ]


def part(path: Path) -> str:
    """The first name below the package."""
    return path.relative_to(ROOT).parts[1].removesuffix(".py")


def evaluation(*parts: str) -> list[Path]:
    return [path for path in modules("evaluation") if part(path) in parts]


def test_this_test_sees_the_packages():
    assert len(modules("jaxsim")) > 15
    assert len(modules("evaluation")) > 10
    assert importing(modules("jaxsim"), "jax")
    assert importing(evaluation("scanner"), "evaluation.schedule")


def test_the_simulator_does_not_know_evaluation():
    assert not importing(modules("jaxsim"), "evaluation")


def test_nothing_but_the_command_line_knows_the_viewer_of_runs():
    rest = [p for p in modules("evaluation") if part(p) not in ("view", "cli")]
    assert not importing(rest, "evaluation.view")


def test_worlds_do_not_know_agents_or_evaluation():
    worlds = [path for path in modules("jaxsim") if part(path) == "worlds"]
    assert not importing(worlds, "jaxsim.agents", "jaxsim.training", "jaxsim.render")


def test_novelties_and_agents_do_not_know_each_other():
    """What an agent is tested by may not be what it was made from."""
    inside = [path for path in modules("jaxsim") if part(path) == "novelty"]
    assert inside
    assert not importing(inside, "jaxsim.agents", "jaxsim.training", "jaxsim.lanes")
    players = [path for path in modules("jaxsim") if part(path) in ("agents", "training")]
    assert not importing(players, "jaxsim.novelty")


def test_the_simulator_has_no_file_clock_or_socket():
    inside = modules("jaxsim")
    # Options of the compiler go through an environment variable, and devices are made for cores.
    backend = [path for path in inside if part(path) == "backend"]
    # Traced programs are files, and a source file is older than the process or not.
    store = [path for path in inside if part(path) == "program_store"]
    rest = [path for path in inside if path not in backend + store]
    assert not importing(rest, *OUTSIDE)
    assert not importing(backend, *OUTSIDE - {"os"})
    assert not importing(store, *OUTSIDE - {"os", "pathlib", "threading", "time"})
    reaching = [
        f"{path.relative_to(ROOT)}:{line} calls {name}"
        for path in inside
        for name, line in calls(path)
        if name in OUTSIDE_CALLS
    ]
    assert not reaching


def test_no_program_waits_for_a_library_of_linear_algebra():
    """Two batched factorisations in a program can wait for each other for ever (see `network`)."""
    words = ("jnp.linalg", "jax.numpy.linalg", "jax.lax.linalg", "jax.scipy.linalg", "jnp.fft")
    words += ("jax.random.orthogonal", "jax.random.multivariate_normal", "initializers.orthogonal")
    for package in ("jaxsim", "evaluation"):
        for path in modules(package):
            used = [word for word in words if word in path.read_text()]
            assert not used, f"{path} uses {used}"


def test_the_simulator_draws_nothing_from_numpy_but_the_original_stream():
    """Randomness is counted; only the original's own generator is NumPy's."""
    for path in modules("jaxsim"):
        used = "np.random" in path.read_text()
        assert not used or path.name == "wsu.py" or "adapters" in path.parts, path


def test_metrics_know_nothing_else_of_evaluation():
    metrics = evaluation("metrics")
    allowed = ("imports evaluation.metrics", "imports evaluation.lazy.")
    texts = importing(metrics, "evaluation")
    assert not [text for text in texts if not any(words in text for words in allowed)]
    assert not importing(metrics, *OUTSIDE)


def test_engines_and_metrics_know_no_front_door():
    inner = evaluation(
        "schedule", "episodes", "scanner", "session", "records", "metrics", "clock", "tasks"
    )
    doors = [f"evaluation.{door}" for door in sorted(FRONT_DOORS)]
    assert not importing(inner, *doors, "evaluation.cli", "evaluation.report", "evaluation.logs")
    assert not importing(inner, "evaluation.checkpoints")


def test_reports_and_logs_know_no_front_door():
    doors = [f"evaluation.{door}" for door in sorted(FRONT_DOORS)]
    assert not importing(evaluation("report", "logs"), *doors, "evaluation.cli")
    assert not importing(evaluation("logs"), "evaluation.report", "evaluation.metrics")


def test_no_front_door_leads_through_another():
    for door in sorted(FRONT_DOORS):
        other_doors = [f"evaluation.{other}" for other in sorted(FRONT_DOORS - {door})]
        assert not importing(evaluation(door), *other_doors)


def test_sweeps_are_known_to_the_command_alone():
    rest = [path for path in modules("evaluation") if part(path) not in ("sweep", "cli")]
    assert not importing(rest, "evaluation.sweep")


def test_looking_at_a_sweep_does_not_wait_for_jax():
    """`status` and `table` read names and tables; the modules behind them import no base."""
    quick = ["axes", "document", "grid", "plans", "store", "notes", "progress", "merging", "tables"]
    paths = [path for path in evaluation("sweep") if path.stem in quick]
    assert len(paths) == len(quick)
    behind = ("bases", "planning", "playing", "interface")
    assert not importing(paths, "jax", "jaxsim", *(f"evaluation.sweep.{n}" for n in behind))


def test_only_the_edge_touches_files():
    inner = [path for path in modules("evaluation") if part(path) not in MAY_TOUCH_FILES]
    assert inner
    assert not importing(
        inner, "os", "pathlib", "shutil", "tempfile", "io", "socket", "pyarrow.parquet"
    )
    opening = [path for path in inner for name, _ in calls(path) if name == "open"]
    assert not opening


@pytest.mark.parametrize("package", ["jaxsim", "evaluation"])
def test_packages_do_not_import_tests_or_tools(package):
    assert not importing(modules(package), "tests", "benchmarks", "tools", "pytest", "hypothesis")


def test_the_simulator_needs_only_its_core_dependencies():
    """Heavy or optional packages have no place in it."""
    assert not importing(
        modules("jaxsim"), "pyarrow", "rich", "matplotlib", "scipy", "pandas", "torch"
    )


def neighbours(folder: Path) -> list[str]:
    """Names of the modules and packages directly in a package."""
    packages = [path.parent.name for path in folder.glob("*/__init__.py")]
    return sorted([*packages, *(p.stem for p in folder.glob("*.py") if p.stem != "__init__")])


LARGE = [
    path.parent
    for package in PACKAGES
    for path in sorted((ROOT / package).rglob("__init__.py"))
    if len(neighbours(path.parent)) > 8
]


@pytest.mark.parametrize("folder", LARGE, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_the_module_map_of_a_large_package_names_every_module(folder):
    face = folder / "__init__.py"
    text = ast.get_docstring(parsed(face))
    assert text
    listed = re.findall(r"^\| `(\w+)` \| (.+) \|$", text, re.M)
    names, place = [name for name, _ in listed], face.relative_to(ROOT)
    missing = [name for name in neighbours(folder) if name not in names]
    assert not missing, f"the table in the docstring of {place} lacks a row: {missing}"
    assert sorted(names) == neighbours(folder), f"{place} has a row too many in its docstring"
    assert all(len(subject.split()) > 1 for _, subject in listed)


def test_large_packages_are_seen():
    assert {ROOT / "jaxsim", ROOT / "evaluation", ROOT / "jaxsim/worlds/cartpole3d"} <= set(LARGE)


def dotted(path: Path) -> str:
    """Name that a file is imported by."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def loaded(path: Path, names: set[str]) -> Iterator[str]:
    """Modules of `names` that a file imports; a face only loads what is asked for.

    A face is the `__init__` of a package: it lists its public names for type checkers.
    """
    nodes = list(ast.walk(parsed(path)))
    unread = {
        id(node)
        for branch in nodes
        if isinstance(branch, ast.If) and ast.unparse(branch.test) == "TYPE_CHECKING"
        for node in ast.walk(branch)
        if path.stem == "__init__"
    }
    for node in nodes:
        if id(node) in unread or not isinstance(node, ast.ImportFrom | ast.Import):
            continue
        for alias in node.names:
            name = f"{node.module}.{alias.name}" if isinstance(node, ast.ImportFrom) else alias.name
            yield name if name in names else name.rpartition(".")[0]


def import_graph() -> set[tuple[str, str]]:
    """Pairs of neighbours, at any depth, of which the first imports the second.

    A neighbour stands for all that is below it. Left out are `__main__` modules, which nobody
    imports, and packages of other names.
    """
    paths = [path for package in PACKAGES for path in modules(package)]
    paths = [path for path in paths if path.stem != "__main__" and "packages" not in path.parts]
    names = {dotted(path) for path in paths}
    pairs = set()
    for path in paths:
        source = dotted(path).split(".")
        for name in loaded(path, names):
            target = name.split(".")
            shared = sum(
                1 for _ in takewhile(lambda p: p[0] == p[1], zip(source, target, strict=False))
            )
            if name in names and shared < min(len(source), len(target)):
                pairs.add((".".join(source[: shared + 1]), ".".join(target[: shared + 1])))
    return pairs


def test_packages_and_modules_do_not_import_in_circles():
    pairs = import_graph()
    assert ("evaluation", "jaxsim") in pairs and ("tools", "benchmarks") in pairs
    assert pairs >= DEFERRED
    order: TopologicalSorter[str] = TopologicalSorter()
    for source, target in pairs - DEFERRED:
        order.add(source, target)
    order.prepare()  # raises CycleError with the circle


# Files that every world has.
OF_WORLDS = {"types", "dynamics", "env", "generate", "levels", "sensors", "arrays", "wsu"}
# Folders side by side that hold one subject each in the same files.
PARALLEL = {
    "format": "evaluation/logs",
    "reader": "evaluation/logs",
    "writer": "evaluation/logs",
    "lifetimes": "evaluation/metrics",
}


def house(path: Path) -> Path:
    """The folder in which a module's name stands once: that of the command group it belongs to.

    Modules of `jaxsim`, which has no commands, share one.
    """
    return next((p for p in path.parents if (p / "commands.py").exists()), ROOT / path.parts[0])


@pytest.mark.parametrize("package", PACKAGES)
def test_a_module_name_stands_once(package):
    """In the folders of one command group, or in a package that has none.

    Worlds have the same files, and so have the formats of logs and the editions of metrics.
    """
    places: dict[tuple[Path, str], list[str]] = {}
    for path in modules(package):
        name = path.relative_to(ROOT)
        same = path.stem in OF_WORLDS and "worlds" in path.parts
        same |= str(name).startswith(PARALLEL.get(path.stem, "-"))
        if not same and not path.stem.startswith("__") and "packages" not in path.parts:
            places.setdefault((house(path), path.stem), []).append(str(name))
    assert not [names for names in places.values() if len(names) > 1]


# Class names that several files have: every world is the same set of files, every agent's functions
# pass on a memory, and programs for aiVLE's grader are written with its `Agent`.
OF_EACH = {
    "Agent": {"jaxsim/agents/base.py", "evaluation/grader/agent.py"},
    "Config": {"jaxsim/worlds/*/types.py"},
    "Params": {"jaxsim/worlds/*/types.py"},
    "State": {"jaxsim/worlds/*/types.py"},
    "Memory": {"jaxsim/agents/*.py", "jaxsim/training/*.py"},
}


def test_a_class_name_stands_once():
    """In all packages, with the exception of `OF_EACH`; what is the same has one class."""
    places: dict[str, list[Path]] = {}
    for path in (path for package in PACKAGES for path in modules(package)):
        for node in parsed(path).body:
            if isinstance(node, ast.ClassDef):
                places.setdefault(node.name, []).append(path.relative_to(ROOT))
    repeated = {name for name, paths in places.items() if len(paths) > 1}
    assert repeated == set(OF_EACH), {name: places[name] for name in repeated - set(OF_EACH)}
    for name, patterns in OF_EACH.items():
        elsewhere = [p for p in places[name] if not any(p.match(each) for each in patterns)]
        assert not elsewhere, f"{name} stands in {elsewhere} too"


# --- the page on architecture -----------------------------------------------------------------

PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")


def rows_below(heading: str) -> list[list[str]]:
    """Cells of the first table below a heading of the page."""
    lines = PAGE.split(f"## {heading}\n")[1].split("\n## ")[0].splitlines()
    return [line.strip("| ").split(" | ") for line in lines if line.startswith("| ")][2:]


def test_the_table_of_the_page_holds():
    rules = {part.strip("`"): re.findall(r"`([^`]+)`", never) for part, never in rows_below(RULES)}
    assert {f"evaluation/{door}" for door in FRONT_DOORS - {"train", "evaluate"}} <= set(rules)
    for place, never in rules.items():
        path = ROOT / place
        paths = sorted(path.rglob("*.py")) if path.is_dir() else [path.with_suffix(".py")]
        assert never and paths and all(path.is_file() for path in paths), place
        assert not importing(paths, *never)


def test_the_way_of_a_number_names_code_that_exists():
    names = [name for row in rows_below("One number") for name in re.findall(r"`([^`]+)`", row[1])]
    dotted = [name for name in names if name.startswith(("jaxsim.", "evaluation."))]
    assert len(dotted) > 8
    for name in dotted:
        assert pkgutil.resolve_name(name)


def test_the_way_of_a_parameter_leads_to_the_lines_where_it_acts():
    source = "\n".join(path.read_text() for path in modules("jaxsim") if "cartpole3d" in path.parts)
    fragments = [row[1].split("`")[1] for row in rows_below("One parameter")]
    lines = [text for text in fragments if "gravity" in text and "$" not in text]
    assert len(lines) == 5
    assert [text for text in lines[1:] if text not in source] == []
