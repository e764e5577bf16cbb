"""Attacks on the package, seeded, for as long as one likes: `make siege`.

    python -m benchmarks.siege --minutes 5 --seed 0 --out docs/siege.md
    python -m benchmarks.siege --minutes 0 --attack calls --first 17   # try 17 once more
    python -m benchmarks.siege --kills 1000 --messages 1000000 --state siege.jsonl   # goes on

Each attack is a generator of `Blow`s, which goes on until its time is over. What is tried follows
from the seed and the number of the try, so that one that failed can be tried again alone.
"""

from typing import NamedTuple


class Blow(NamedTuple):
    """One try of an attack.

    Attributes:
      what: kind of the try, a row of the table.
      count: how often it was tried in this blow, e.g. messages sent.
      came: what happened, a word for the table: "refused", "went on", ...
      failure: what must not happen, with what repeats it; "" if all is well.
    """

    what: str
    count: int
    came: str
    failure: str = ""
