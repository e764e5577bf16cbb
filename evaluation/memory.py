"""What fits into the memory of this machine, so that what does not is refused before play."""

import os


def physical() -> int:
    """Memory of this machine, bytes."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def check_fits(number: int, held: int, what: str, remedy: str, taken: int = 0) -> None:
    """Refuse what is sure to hold more than the memory of this machine.

    Args:
      number: of things.
      held: bytes that each of them takes at the least.
      what: the things, for people.
      remedy: what to do instead, for people.
      taken: bytes that are taken already.

    Raises:
      ValueError: they do not fit; says how many do.
    """
    memory = physical()
    fitting = max(memory - taken, 0) // held if held else number
    if number > fitting:
        raise ValueError(
            f"{number:,} {what} do not fit into the {memory / 2**30:.0f} GiB of this machine; at "
            f"most {fitting:,} do: {remedy}"
        )
