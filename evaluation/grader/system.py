"""Calls of Linux that Python does not have."""

import ctypes
from typing import Final

CAPABILITIES_3: Final = 0x20080522
"""Version of capset(2)."""


def prctl(option: int, value: int, more: int = 0) -> bool:
    """Set an option of this process; return whether the system did. See prctl in section 2."""
    try:
        call = ctypes.CDLL(None, use_errno=True).prctl
    except (OSError, AttributeError):
        return False
    words = [ctypes.c_ulong(word) for word in (value, more, 0, 0)]
    return bool(call(ctypes.c_int(option), *words) == 0)


def drop_capability(number: int) -> None:
    """Give up a capability for good, if this process has it."""
    header = (ctypes.c_uint32 * 2)(CAPABILITIES_3, 0)
    sets = (ctypes.c_uint32 * 6)()  # effective, permitted, inheritable: bits 0 to 31, then the rest
    try:
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.capget(header, sets) == 0:
            for place in range(3):
                sets[place] &= ~(1 << number)
            libc.capset(header, sets)
    except (OSError, AttributeError):
        return
