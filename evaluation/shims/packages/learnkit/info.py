"""``python -m learnkit.info``."""

from evaluation.info import main

__all__ = ["main"]

if __name__ == "__main__":
    raise SystemExit(main())
