"""The command in a process of its own, with an agent that learns; may kill itself as it saves.

Run as `python -m tests.evaluation.checkpoints.child MOMENT NUMBER ARGUMENTS...`: with the moment
"none" the command is as users have it, with another the process sends itself SIGKILL when it gets
there for the NUMBER-th time.
"""

import os
import signal
import sys
from pathlib import Path

from evaluation import cli, files
from evaluation.checkpoints import store
from tests.evaluation import learner

MOMENTS = {
    "arrays": (store, "_size_and_digest"),  # written, but nothing says so yet
    "rename": (Path, "rename"),  # before the step gets its name, or an old one loses its own
    "prune": (store, "remove"),  # after the step has got its name
    "write": (files, "_write_whole"),  # results, beside their places
    "move": (files, "_move"),  # to their places
}


def killed_at(owner, name, number):
    """Let a function kill the process when it is called for the `number`-th time."""
    real, calls = getattr(owner, name), []

    def call(*arguments):
        calls.append(name)
        if len(calls) == number:
            os.kill(os.getpid(), signal.SIGKILL)
        return real(*arguments)

    setattr(owner, name, call)


def main():
    moment, number, *arguments = sys.argv[1:]
    learner.register()
    if moment in MOMENTS:
        killed_at(*MOMENTS[moment], int(number))
    return cli.main(arguments)


if __name__ == "__main__":
    sys.exit(main())
