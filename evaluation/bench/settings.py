"""Settings of our own program, passed on its command line."""

import json
from dataclasses import asdict, dataclass

PD = "pd"
"""The default agent; the peers have no other."""


@dataclass(frozen=True)
class ProgramSettings:
    """How the program runs.

    Attributes:
      configured: whether `jaxsim.configure_cpu` is called.
      episodes: as in `evaluation.bench.run.Benchmark`.
      agent: agent of `jaxsim.rollout`, a name or "FILE.py".
      seed: of the first call; each later one has the next.
      threads: parts of the episodes that are played at the same time; None for one a core.
      chunk: lanes that advance together; None for what suits the backend.
    """

    configured: bool
    episodes: int
    agent: str = PD
    seed: int = 0
    threads: int | None = None
    chunk: int | None = None

    def dumps(self) -> str:
        """Return the settings as an argument of the command line."""
        return json.dumps(asdict(self))

    @classmethod
    def loads(cls, argument: str) -> "ProgramSettings":
        """Rebuild settings written by `dumps`."""
        return cls(**json.loads(argument))
