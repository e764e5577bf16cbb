"""README, site and hand-written pages: complete, connected, and in words that readers know."""

import ast
import io
import json
import pkgutil
import re
import runpy
import shlex
import tokenize
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

from evaluation import cli

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
README = ROOT / "README.md"
MOST_WORDS = 900
PROJECT = ("jaxsim", "evaluation", "benchmarks", "tools")
WRITTEN_ANEW = {DOCS / "notebooks", DOCS / "reference" / "api"}  # when the site is built


def pages() -> list[Path]:
    """Markdown of the site."""
    paths = sorted(DOCS.rglob("*.md"))
    return [page for page in paths if not WRITTEN_ANEW & set(page.parents)]


def text_of(page: Path) -> str:
    return page.read_text(encoding="utf-8")


EVERYTHING = [README, ROOT / "CONTRIBUTING.md", *pages()]
COMMAND_RUNNER = runpy.run_path(str(ROOT / ".ci" / "readme_commands.py"))


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


every_page = pytest.mark.parametrize("page", EVERYTHING, ids=name_of)


# --- the README -------------------------------------------------------------------------------


def test_the_readme_is_short():
    """Words as `wc -w` counts them: of code, tables and generated rows too, since they are read."""
    assert len(text_of(README).split()) <= MOST_WORDS


def test_the_readme_has_one_command_for_each_front_door():
    door = r"^jaxsim (run|sailon|sciencebirds|gvgai|grade) "
    block = text_of(README).split("## Five front doors")[1].split("```")[1]
    assert sorted(re.findall(door, block, re.MULTILINE)) == [
        *("grade", "gvgai", "run", "sailon", "sciencebirds")
    ]


def test_numbers_of_the_readme_are_those_of_the_pages():
    """Each number that is a link stands on the page behind it."""
    table = text_of(README).split("## Numbers")[1].split("\n## ")[0]
    linked = re.findall(r"\[([^]]+)\]\((docs/[a-z_]+\.md)", table)
    assert len(linked) == 7
    for words, page in linked:
        text = text_of(ROOT / page)
        for number in re.findall(r"\d*\.?\d+", words):
            assert re.search(rf"(?<![\d.]){number}(?!\d)|(?<!\d)0{number}(?!\d)", text), (
                words,
                page,
            )


# --- the site ---------------------------------------------------------------------------------


def listed(page: Path) -> list[Path]:
    """Pages in the toctrees of a page."""
    trees = re.findall(r"^```\{toctree\}\n(.*?)^```", text_of(page), re.DOTALL | re.MULTILINE)
    entries = [line for tree in trees for line in tree.splitlines() if line and line[0] != ":"]
    return [(page.parent / f"{entry}.md").resolve() for entry in entries if "*" not in entry]


def test_every_page_is_in_the_toctree_once():
    reached = [entry for page in pages() for entry in listed(page)]
    assert sorted(reached) == [page for page in pages() if page != DOCS / "index.md"]


def extension(name: str):
    spec = spec_from_file_location(name, DOCS / "extensions" / f"{name}.py")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_package_with_public_names_is_in_the_reference():
    """The build then checks every name: a page documents all that its package exports."""
    pytest.importorskip("sphinx")
    listed_names = set(re.findall(r"^   ([a-z0-9_.]+)$", text_of(DOCS / "reference/api.md"), re.M))
    packages = list(extension("public_names").packages())
    assert len(packages) > 20 and {"jaxsim", "evaluation.l2m"} <= set(packages)
    assert set(packages) - listed_names == set()


def test_a_public_name_without_documentation_is_reported():
    pytest.importorskip("sphinx")
    public = extension("public_names")
    known = {
        f"{package}.{name}"
        for package in public.packages()
        for name in public.public_names(package)
    }
    assert "jaxsim.make" in known and "jaxsim.novelty" not in known
    assert public.undocumented(known) == []
    assert public.undocumented(known - {"jaxsim.make"}) == ["jaxsim.make"]


def test_a_table_of_a_docstring_is_shown_as_one():
    pytest.importorskip("sphinx")
    docstrings = extension("docstrings")
    table = [
        "Text.",
        "",
        "| module | subject |",
        "| --- | ---: |",
        "| `a` | one |",
        "",
        "|v| ends.",
    ]
    assert list(docstrings.with_tables(table)) == [
        *("Text.", "", "", ".. list-table::", "   :header-rows: 1", ""),
        *("   * - module", "     - subject", "   * - `a`", "     - one", "", "|v| ends."),
    ]


def test_a_notebook_is_shown_with_outputs_only_of_its_own_code():
    pytest.importorskip("sphinx")
    with_outputs = extension("notebooks").with_outputs
    text = text_of(sorted((ROOT / "notebooks").glob("*.ipynb"))[0])
    executed = text.replace('"outputs": []', '"outputs": [1]').replace("# A first", "# An old")
    shown, other = json.loads(text), json.loads(text)
    assert with_outputs(shown, json.loads(executed))
    assert all(cell["outputs"] == [1] for cell in shown["cells"] if cell["cell_type"] == "code")
    assert shown["cells"][0] == other["cells"][0]  # its own text
    assert not with_outputs(other, json.loads(executed.replace("import ", "import  ", 1)))
    assert other == json.loads(text)


# --- links and commands -----------------------------------------------------------------------


def without_code(text: str) -> str:
    return re.sub(r"^ *(```+|~~~+).*?^ *\1", "", text, flags=re.DOTALL | re.MULTILINE)


def anchors(page: Path) -> set[str]:
    """Anchors of a page's headings, as GitHub and the site make them."""
    headings = re.findall(r"^#+ +(.*?) *#*$", without_code(text_of(page)), re.MULTILINE)
    words = [re.sub(r"\]\([^)]*\)", "", heading).lower() for heading in headings]
    return {re.sub(r"[^\w\- ]", "", heading).replace(" ", "-") for heading in words}


def broken_links(page: Path) -> list[str]:
    """Links of a page whose file or anchor does not exist."""
    links = re.findall(r"\]\(([^)\s]+)\)", without_code(text_of(page)))
    broken = []
    for link in links:
        if re.match(r"[a-z]+:", link):
            continue
        place, _, anchor = link.partition("#")
        target = (page.parent / place).resolve() if place else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            broken.append(link)
    return broken


@every_page
def test_links_lead_somewhere(page):
    assert broken_links(page) == []


def test_broken_links_are_seen(tmp_path):
    (tmp_path / "other.md").write_text("# A heading, with words\n")
    page = tmp_path / "page.md"
    page.write_text("[a](other.md#a-heading-with-words) [b](other.md#gone) [c](gone.md) [d](#no)\n")
    assert broken_links(page) == ["other.md#gone", "gone.md", "#no"]


def commands_of(page: Path) -> list[str]:
    """Commands of this package in the page's blocks for a shell."""
    blocks = re.findall(r"^```(?:bash|console)\n(.*?)^```", text_of(page), re.DOTALL | re.MULTILINE)
    lines = [line.strip() for block in blocks for line in block.replace("\\\n", " ").splitlines()]
    return [re.split(r" [#>|]", line)[0] for line in lines if line.startswith("jaxsim ")]


@every_page
def test_commands_parse(page):
    parser = cli.build_parser()
    for command in commands_of(page):
        try:
            assert parser.parse_args(shlex.split(command)[1:]).handler
        except SystemExit as error:
            assert error.code == 0, command  # --help


def unknown_names(code: str) -> list[str]:
    """Names of this project that code uses and that do not exist."""
    tree = ast.parse(code)
    known: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            known |= {name.asname or name.name: f"{node.module}:{name.name}" for name in node.names}
        elif isinstance(node, ast.Import):
            known |= {name.asname: name.name for name in node.names if name.asname}
            known |= {
                n.name.split(".")[0]: n.name.split(".")[0] for n in node.names if not n.asname
            }
    names = set(known.values())
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            home = known.get(node.value.id)
            names |= {f"{home}{'.' if ':' in home else ':'}{node.attr}"} if home else set()
    internal = [name for name in sorted(names) if name.startswith(PROJECT) and "*" not in name]
    return [name for name in internal if not exists(name)]


def exists(name: str) -> bool:
    """Whether "module:attributes" exists, as an attribute or as a module."""
    for way in (name, name.replace(":", ".")):
        try:
            pkgutil.resolve_name(way)
        except (AttributeError, ImportError):
            continue
        return True
    return False


@every_page
def test_python_names_what_exists(page):
    blocks = re.findall(r"^```py(?:thon)?\n(.*?)^```", text_of(page), re.DOTALL | re.MULTILINE)
    if blocks:
        pytest.importorskip("gymnasium")
        pytest.importorskip("gymnax")
    assert [name for block in blocks for name in unknown_names(block)] == []


def test_unknown_names_are_seen():
    code = "import jaxsim\nfrom jaxsim import agents, gone\njaxsim.make\nagents.got\n"
    assert unknown_names(code) == ["jaxsim:agents.got", "jaxsim:gone"]


# Pages whose code a test runs.
TESTED = {
    "docs/grader.md": "evaluation/grader/test_page.py",
    "docs/gvgai.md": "evaluation/gvgai/test_page.py",
    "docs/logs.md": "evaluation/logs/test_page.py",
    "docs/metrics.md": "test_pages.py",
    "docs/metrics-2019.md": "evaluation/l2m/test_report2019.py",
    "docs/statistics.md": "test_statistics_page.py",
    "docs/syllabi.md": "evaluation/l2m/test_build.py",
}


def test_pages_are_run_in_full():
    """Each block for bash or Python is run by `.ci/readme_commands.py` or by a test."""
    pages = {str(page.relative_to(ROOT)): text_of(page) for page in (README, *DOCS.rglob("*.md"))}
    shown = {name for name, text in pages.items() if re.search(r"^```(bash|python)$", text, re.M)}
    assert shown - {"docs/index.md"} == {*COMMAND_RUNNER["PAGES"], *TESTED}  # `make demo`
    for page, test in TESTED.items():
        text = (ROOT / "tests" / test).read_text(encoding="utf-8")
        assert f'"{Path(page).name}"' in text and "exec(" in text


# --- words ------------------------------------------------------------------------------------

RETIRED = {
    r"side by side": "in parallel",
    r"so and so": "a number of",
    r"the same of": "the same for",
    r"(?:go|goes|going|gone|went) on\b": "continue, resume",
    r"\bwhatever\b": "any, all",
    r"\bnobody\b": "no agent, no user",
    r"of (?:yours|ours)\b": "your, our",
    r"of no (?:account|effect)": "ignored",
    r"\bfore(?:tell|told)": "predict",
    r"as (?:many|few) as the \w+ has": "the maximum, the minimum",
}
"""Words that readers stumble over, with what to write instead."""


NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))


def prose_of(page: Path) -> str:
    """What a page says in words, without code."""
    text = text_of(page)
    if page in NOTEBOOKS:
        cells = json.loads(text)["cells"]
        text = "\n".join("".join(c["source"]) for c in cells if c["cell_type"] == "markdown")
    return " ".join(without_code(text).split())


def prose_in(code: str) -> str:
    """Comments and texts of a module: docstrings, messages, pages that it writes."""
    texts = [
        node.value
        for node in ast.walk(ast.parse(code))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]
    tokens = tokenize.generate_tokens(io.StringIO(code).readline)
    comments = [token.string for token in tokens if token.type == tokenize.COMMENT]
    prose = " | ".join([*texts, "".join(comments).replace("#", " ")])
    return " ".join(prose.split())


def retired_words(prose: str) -> dict[str, str]:
    """Retired words in a text, with what to write instead."""
    return {words: better for words, better in RETIRED.items() if re.search(words, prose, re.I)}


@pytest.mark.parametrize("page", [*EVERYTHING, *NOTEBOOKS], ids=name_of)
def test_retired_words_do_not_come_back(page):
    assert not retired_words(prose_of(page))


@pytest.mark.parametrize("package", PROJECT)
def test_retired_words_do_not_come_back_in_code(package):
    modules = sorted((ROOT / package).rglob("*.py"))
    assert len(modules) > 10
    matches = {name_of(path): retired_words(prose_in(text_of(path))) for path in modules}
    assert not {name: words for name, words in matches.items() if words}


def test_retired_words_are_seen_in_code():
    code = '"""Films side\nby side."""\nraise E(f"it goes {1} on; so and so")  # of no\n# effect\n'
    assert set(retired_words(prose_in(code))) == {
        r"side by side",
        r"so and so",
        r"of no (?:account|effect)",
    }
