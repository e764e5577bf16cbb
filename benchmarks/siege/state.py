"""What a siege has tried, in a file, so that one that was interrupted goes on."""

import json
from collections import defaultdict
from pathlib import Path

from benchmarks.siege import Blow


class State:
    """Blows by attack, each written as it comes: one line of JSON each, the seed first.

    Args:
      path: of the file; None to keep nothing.
      seed: of the siege.

    Raises:
      ValueError: the file is of another seed, or no state.
      OSError: it cannot be read or written.
    """

    def __init__(self, path: Path | None, seed: int) -> None:
        self._path = path
        self._blows: dict[str, list[Blow]] = defaultdict(list)
        if path is None:
            return
        if not path.exists():
            path.write_text(json.dumps({"seed": seed}) + "\n")
        try:
            begin, *lines = map(json.loads, path.read_text().splitlines())
            before = begin["seed"]
            for attack, *blow in lines:
                self._blows[attack].append(Blow(*blow))
        except (ValueError, TypeError, KeyError) as error:
            raise ValueError(f"{path} is not the state of a siege; name another file") from error
        if before != seed:
            raise ValueError(f"{path} is of seed {before}, not {seed}; name another file")

    def of(self, attack: str) -> list[Blow]:
        """Blows of an attack."""
        return self._blows[attack]

    def add(self, attack: str, blow: Blow) -> None:
        """Keep a blow."""
        self._blows[attack].append(blow)
        if self._path:
            with self._path.open("a") as file:
                file.write(json.dumps([attack, *blow]) + "\n")

    def blows(self) -> list[Blow]:
        """All blows."""
        return [blow for blows in self._blows.values() for blow in blows]
