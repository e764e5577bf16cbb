"""`jaxsim cache`: the compiled programs that commands keep."""

import argparse
import os

from evaluation.arguments import Commands, add_command
from evaluation.cache import folder as cache

EXAMPLES = """examples:
  jaxsim cache
  jaxsim cache --clear
  JAXSIM_CACHE=off jaxsim run my.json --agent pd --out runs/pd
  jaxsim --no-cache run my.json --agent pd --out runs/pd

Compiling takes most of the time of a short run, so commands keep compiled programs: the same run
starts at once the next time. The folder is the user's cache folder, or $JAXSIM_CACHE, or JAX's own
$JAX_COMPILATION_CACHE_DIR. Beyond 2 GiB the least recently used programs are removed. Removing the
folder is always safe. `bench` and `grade` keep nothing.
"""


def add_to(commands: Commands) -> None:
    """Add `cache` to the subcommands of `jaxsim`."""
    parser = add_command(
        commands, "cache", "show or clear the compiled programs that commands keep", EXAMPLES
    )
    parser.add_argument("--clear", action="store_true", help="remove all of them")
    parser.set_defaults(handler=_cache)


def _cache(arguments: argparse.Namespace) -> int:
    place = cache.folder(os.environ)
    if place is None:
        print(f"nothing is kept: ${cache.VARIABLE} is {cache.OFF}")
        return 0
    if isinstance(place, str):
        raise ValueError(f"{place} is not on this machine; show and clear it where it is stored")
    contents = cache.clear(place) if arguments.clear else cache.contents(place)
    where = "removed from" if arguments.clear else "in"
    print(f"{contents.programs:,} programs, {contents.bytes / 2**20:.1f} MiB, {where} {place}")
    return 0
