"""The tries of a siege in a file, so that an interrupted siege can continue."""

import json
from collections import defaultdict
from pathlib import Path

from benchmarks.siege import Blow


class BlowLog:
    """Blows by attack, and the time that each attack has lasted.

    Each blow is written at once, as a line of JSON; the first line has the seed.

    Args:
      path: the file; None to write nothing.
      seed: seed of the siege.

    Raises:
      ValueError: the file belongs to another seed, or is not a state.
      OSError: the file cannot be read or written.
    """

    def __init__(self, path: Path | None, seed: int) -> None:
        self._path = path
        self._blows: dict[str, list[Blow]] = defaultdict(list)
        self._seconds: dict[str, float] = defaultdict(float)
        if path is None:
            return
        if not path.exists():
            path.write_text(json.dumps({"seed": seed}) + "\n")
        try:
            header, *lines = map(json.loads, path.read_text().splitlines())
            saved_seed = header["seed"]
            for attack, seconds, *blow in lines:
                self._append(attack, Blow(*blow), float(seconds))
        except (ValueError, TypeError, KeyError) as error:
            raise ValueError(f"{path} is not the state of a siege; name another file") from error
        if saved_seed != seed:
            raise ValueError(f"{path} is of seed {saved_seed}, not {seed}; name another file")

    def of(self, attack: str) -> list[Blow]:
        """Blows of an attack."""
        return self._blows[attack]

    def seconds(self, attack: str) -> float:
        """How long an attack has lasted."""
        return self._seconds[attack]

    def add(self, attack: str, blow: Blow, seconds: float) -> None:
        """Keep a blow, and the seconds since the one before it."""
        self._append(attack, blow, seconds)
        if self._path:
            with self._path.open("a") as file:
                file.write(json.dumps([attack, round(seconds, 3), *blow]) + "\n")

    def _append(self, attack: str, blow: Blow, seconds: float) -> None:
        self._blows[attack].append(blow)
        self._seconds[attack] += seconds

    def blows(self) -> list[Blow]:
        """All blows."""
        return [blow for blows in self._blows.values() for blow in blows]
