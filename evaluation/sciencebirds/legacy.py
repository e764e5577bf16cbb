"""Differences of the original from its document, each of which can be chosen by name.

The original exists in two snapshots. `later` chooses the differences of both, `older` adds those of
the older one only.
"""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from evaluation.sciencebirds.generate import GenerateOptions
    from evaluation.sciencebirds.scheduler import Quirks


@dataclass(frozen=True)
class Difference:
    """A difference of the original.

    Attributes:
      document: behaviour in the document, and here by default.
      original: behaviour of the original.
    """

    document: str
    original: str


SCHEDULING: Final[dict[str, Difference]] = {
    "direct_start": Difference(
        "every trial begins with 11, then 9 or 8",
        "the first one begins with 9, and after 11 the training has begun",
    ),
    "nine_for_eight": Difference(
        "test sets are announced by 8",
        "the first test set of a checkpoint is announced by 9; the reply to 68 says testing",
    ),
    "all_tests": Difference(
        "a checkpoint takes the next test set; the last one again where there is none",
        "every checkpoint runs the whole list of test sets",
    ),
    "spent_tests": Difference(
        "a test set has all its attempts each time",
        "test sets that were run once are empty at later checkpoints",
    ),
    "count_loads": Difference("an interaction is a shot", "a load is an interaction, too"),
    "count_tests": Difference(
        "limits of the training count the training only",
        "its interactions include those of tests; its time begins anew with each test set and "
        "includes it",
    ),
    "one_execution": Difference("a trial is run as often as it says", "a trial is run once"),
    "lost_position": Difference(
        "after a test the training resumes where it was",
        "the level and the count that 12 goes by are forgotten; where it has no attempts left, no "
        "load is answered any more, and the server closes the connection after the idle limit",
    ),
    "no_unlimited": Difference(
        "a limit of 0 or less attempts is none; 53 goes round all levels",
        "without a limit, level 1 is never served",
    ),
    "off_by_one": Difference(
        "51 counts from 1, and in a sequence takes the current and the next level",
        "in an unordered set 51 looks for the level after the requested one, so that the last one "
        "is never loaded; in a sequence the first 51 of a set is not answered",
    ),
    "ready_always": Difference(
        "68 without an announcement is answered by zeros and changes nothing",
        "it forgets the level and restarts the checkpoint's clock",
    ),
    "load_always": Difference(
        "nothing is loaded while an announcement or a question waits",
        "while a level runs, another may be loaded all the same",
    ),
}
GENERATION: Final[dict[str, Difference]] = {
    "per_level_time": Difference(
        "the time limit is that of the whole training",
        "it is that of a level; the training has the sum",
    ),
    "each_test_once": Difference(
        "as many test sets as checkpoints, by set_appearance_percentage",
        "one test set of each kind",
    ),
}
OLDER_ONLY: Final = ("direct_start", "count_loads")
"""Differences of the older snapshot only."""
LATER: Final = "later"
OLDER: Final = "older"


def names_of(text: str | None) -> tuple[str, ...]:
    """Read the value of `--legacy`.

    Args:
      text: "later", "older", or names with commas between them; None for nothing.

    Raises:
      ValueError: a name that is not known.
    """
    all_names = (*SCHEDULING, *GENERATION)
    if not text:
        return ()
    if text == OLDER:
        return all_names
    if text == LATER:
        return tuple(name for name in all_names if name not in OLDER_ONLY)
    names = tuple(part.strip().replace("-", "_") for part in text.split(","))
    for name in names:
        if name not in all_names:
            allowed = ", ".join((LATER, OLDER, *all_names))
            raise ValueError(f"legacy is {name!r}; it must be of {allowed}")
    return names


def check_effect(text: str | None, ignored: dict[str, Difference], command: str) -> None:
    """Refuse names of differences that a command ignores; the snapshots hold some of each kind.

    Args:
      text: value of `--legacy`.
      ignored: differences that the command ignores.
      command: name of the command, for the error.

    Raises:
      ValueError: one of them is named.
    """
    names = () if text in (LATER, OLDER) else names_of(text)
    given = [name for name in names if name in ignored]
    if given:
        raise ValueError(f"--legacy {','.join(given)} has no effect on {command}; leave it out")


def quirks(names: tuple[str, ...]) -> "Quirks":
    """Differences for the scheduler."""
    from evaluation.sciencebirds.scheduler import Quirks

    return Quirks(**{name: True for name in names if name in SCHEDULING})


def generation(names: tuple[str, ...], options: "GenerateOptions") -> "GenerateOptions":
    """Options of the generator with these differences."""
    if "per_level_time" in names:
        options = replace(options, training_time="per_level")
    if "each_test_once" in names:
        options = replace(options, test_sets="each_once")
    return options
