"""Checks of memory before play: what does not fit into this machine is refused."""

import os


def physical() -> int:
    """Memory of this machine, bytes."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def check_fits(number: int, size: int, what: str, remedy: str, used: int = 0) -> None:
    """Refuse a number of objects that need more memory than this machine has.

    Args:
      number: of objects.
      size: least size of each, bytes.
      what: name of the objects, for the error.
      remedy: what to do instead, for the error.
      used: memory that is in use already, bytes.

    Raises:
      ValueError: the objects do not fit; says how many do.
    """
    memory = physical()
    most = max(memory - used, 0) // size if size else number
    if number > most:
        raise ValueError(
            f"{number:,} {what} do not fit into the {memory / 2**30:.0f} GiB of this machine; at "
            f"most {most:,} do: {remedy}"
        )
