"""``python -m evaluation.l2m.l2metrics``: the command ``jaxsim l2metrics``."""

import sys

from evaluation.cli import main

if __name__ == "__main__":
    sys.exit(main(["l2metrics", *sys.argv[1:]]))
