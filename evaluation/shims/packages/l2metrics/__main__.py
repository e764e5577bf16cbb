"""``python -m l2metrics``: with -log_dir the command of 2019, else the one of version 3.1."""

import sys

OF_2019 = ("-log_dir", "-syllabus_type", "-syllabus_subtype")


def main(arguments: list[str]) -> int:
    """Run the command that the arguments are written for; return its exit code."""
    if any(word.partition("=")[0] in OF_2019 for word in arguments):
        from evaluation.l2m.report2019.commands import l2metrics

        return l2metrics(arguments)
    from evaluation.cli import main

    return main(["l2metrics", *arguments])


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
