"""`python -m evaluation.info` prints where logs are, as `learnkit.info` of the 2019 framework."""

import argparse
import sys
from collections.abc import Iterator, Sequence

from evaluation import __version__
from evaluation.logs import home

EPILOG = """examples:
  python -m evaluation.info
  log_dir=$(ls -t -1 `python -m evaluation.info -get logdir` | head -1)
  jaxsim l2m validate "$(python -m evaluation.info -get lastlog)"

The folders come from $L2DATA; where that is not set, it is l2data in the home directory.
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Print the folders of logs, or the path that `-get` names; return the exit code.

    Args:
      argv: arguments without the program's name; those of the process if None.
    """
    choice = _parser().parse_args(argv).get
    if choice is None:
        print("\n".join(_everything()))
        return 0
    newest = home.newest_log() if choice == "lastlog" else None
    if choice == "lastlog" and newest is None:
        print(f"evaluation.info: no log in {home.logs_folder()}", file=sys.stderr)
        return 1
    if newest is not None:
        print(newest.path)
    else:
        print(home.data_folder() if choice == "datadir" else home.logs_folder())
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m evaluation.info",
        description="Say where lifelong-learning logs are kept and which is the newest.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "-get",
        "--get",
        choices=("datadir", "logdir", "lastlog"),
        help="print only this path: the data folder, the logs folder or the most recent log",
    )
    return parser


def _everything() -> Iterator[str]:
    yield f"jaxsim-novelty v{__version__}"
    yield from ("L2 data folder:", f"  {home.data_folder()}")
    yield from ("L2 logs folder:", f"  {home.logs_folder()}")
    yield "Most recent log folder:"
    newest = home.newest_log()
    if newest is None:
        yield "  none yet"
    else:
        yield f"  {newest.path}"
        yield f"  created on {newest.created.isoformat(timespec='seconds')}"


if __name__ == "__main__":
    sys.exit(main())
