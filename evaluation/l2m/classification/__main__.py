"""``python -m evaluation.l2m.classification``: the command ``jaxsim classify``."""

import argparse
import sys

from evaluation.l2m.classification.commands import EXAMPLES, add_arguments


def main() -> int:
    """Run the command; return its exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m evaluation.l2m.classification",
        description="Play a syllabus of classification over many lifetimes; report its metrics.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_arguments(parser)
    arguments = parser.parse_args()
    try:
        return int(arguments.handler(arguments))
    except (ValueError, OSError) as error:
        print(f"{parser.prog}: {' '.join(str(error).split())}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    raise SystemExit(main())
