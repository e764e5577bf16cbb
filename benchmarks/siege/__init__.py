"""Seeded attacks on the package, for any length of time: `make siege`.

    python -m benchmarks.siege --minutes 5 --seed 0 --out docs/siege.json
    python -m benchmarks.siege --minutes 0 --attack calls --first 17   # repeat try 17
    python -m benchmarks.siege --kills 1000 --messages 1000000 --state siege.jsonl   # can continue

Each attack is an endless generator of `Blow`s, which is read until its time is over. What is tried
follows from the seed and the number of the try, so that a failed try can be repeated alone.
"""

from typing import NamedTuple


class Blow(NamedTuple):
    """One try of an attack, with its outcome.

    Attributes:
      what: kind of the try, a row of the table.
      count: how often it was tried in this blow, e.g. the number of messages sent.
      outcome: what happened, in a few words for the table, e.g. "refused in one line".
      failure: what went wrong, with the number of the try, to repeat it; "" if all is well.
    """

    what: str
    count: int
    outcome: str
    failure: str = ""
