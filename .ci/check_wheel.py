"""Build the sdist and the wheel, and try both outside the clone.

The wheel is installed in an empty environment. Some quick tests of the sdist run in its own folder.

Run it with the Python of .venv: the build uses the locked backend there, without isolation.
"""

import os
import re
import subprocess
import sys
import tarfile
import tempfile
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("jaxsim", "evaluation")
# Tests of the sdist: quick, of both packages, and of the files that belong to neither.
TESTS = (
    "tests/test_architecture.py",
    "tests/test_site.py",
    "tests/jaxsim/test_rng.py",
    "tests/evaluation/l2m/test_syllabus.py",
)

# Runs inside the empty environment. rich stands for every extra: with it there, the check of
# the command line would show nothing.
PROBE = """
import importlib, importlib.util, pathlib, sys
site = pathlib.Path(sys.prefix).resolve()
if importlib.util.find_spec("rich"):
    sys.exit("rich is installed, although nothing asked for the cli extra")
for name in sys.argv[2:]:
    package = importlib.import_module(name)
    folder = pathlib.Path(package.__file__).resolve().parent
    if site not in folder.parents:
        sys.exit(f"{name} was imported from {folder}, not from the wheel")
    if not (folder / "py.typed").is_file():
        sys.exit(f"{name} has no py.typed")
    if package.__version__ != sys.argv[1]:
        sys.exit(f"{name}.__version__ is {package.__version__}, the wheel's is {sys.argv[1]}")
    print(f"{name} {package.__version__}, py.typed, from the wheel")
"""


def run(*command: str | Path, cwd: Path) -> None:
    """Run a command without this shell's Python settings, and stop when it fails."""
    hidden = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV")
    env = {name: value for name, value in os.environ.items() if name not in hidden}
    print("+", *command[:1], *("..." if "\n" in str(a) else a for a in command[1:]), flush=True)
    done = subprocess.run(command, cwd=cwd, env=env, stdin=subprocess.DEVNULL, check=False)
    if done.returncode:
        sys.exit(f"wheel check failed: exit code {done.returncode} from the command above")


def constraints_of(lock: str) -> str:
    """Keep `name==version ; marker` of each entry of the lock: a constraint takes no hashes."""
    entries = re.findall(r"^([a-z0-9][^\\\n]*?)\s*\\?$", lock, flags=re.MULTILINE)
    return "\n".join(entries) + "\n"


def foreign_files(wheel: Path, dist_info: str) -> list[str]:
    """List what is in the wheel and belongs to neither package nor to its metadata."""
    allowed = tuple(f"{folder}/" for folder in (*PACKAGES, dist_info))
    return [name for name in zipfile.ZipFile(wheel).namelist() if not name.startswith(allowed)]


def test_sdist(sdist: Path, folder: Path) -> None:
    """Unpack the sdist and run its tests there, on its own packages."""
    with tarfile.open(sdist) as archive:
        archive.extractall(folder, filter="data")
    (source,) = folder.iterdir()
    # The current folder comes first, so neither package is that of the clone.
    where = "import jaxsim, pathlib as p; assert p.Path.cwd() in p.Path(jaxsim.__file__).parents"
    run(sys.executable, "-c", where, cwd=source)
    run(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *TESTS, cwd=source)


def main() -> None:
    """Run every check in a temporary folder, which is removed afterwards."""
    with tempfile.TemporaryDirectory(prefix="wheel-check-") as name:
        temp = Path(name).resolve()
        # Without --wheel, build makes the wheel from the sdist: that shows the sdist is complete.
        run(sys.executable, "-m", "build", "--no-isolation", "--outdir", temp, ROOT, cwd=temp)
        (wheel,) = temp.glob("*.whl")
        distribution, version = wheel.name.split("-")[:2]
        if foreign := foreign_files(wheel, f"{distribution}-{version}.dist-info"):
            sys.exit("the wheel holds files outside the two packages: " + ", ".join(foreign))

        (sdist,) = temp.glob("*.tar.gz")
        test_sdist(sdist, temp / "sdist")

        constraints = temp / "constraints.txt"
        lock = (ROOT / "requirements.lock").read_text(encoding="utf-8")
        constraints.write_text(constraints_of(lock), encoding="utf-8")
        venv.create(temp / "env", with_pip=True)
        scripts = temp / "env" / "bin"
        python = scripts / "python"
        pip = (python, "-m", "pip", "--disable-pip-version-check")
        run(
            *(*pip, "install", "--quiet", "--only-binary", ":all:"),
            *("--constraint", constraints, wheel),
            cwd=temp,
        )
        run(*pip, "check", cwd=temp)
        run(python, "-c", PROBE, version, *PACKAGES, cwd=temp)
        run(scripts / "jaxsim", "--version", cwd=temp)
        run(scripts / "jaxsim", "--help", cwd=temp)
    print(f"wheel check passed: {wheel.name}")


if __name__ == "__main__":
    main()
