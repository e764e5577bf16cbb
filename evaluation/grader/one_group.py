"""Keep a process and all that it starts in one process group, by a filter of system calls.

A signal to a group reaches all its members at once, also those that fork at that moment. A process
that leaves its group, and is another one each time it is looked for, could not be ended.
"""

import ctypes
import platform
import sys
from typing import Final, NamedTuple

from evaluation.grader.system import prctl

SET_SECCOMP: Final = 22
SET_NO_NEW_PRIVILEGES: Final = 38
MODE_FILTER: Final = 2
"""Options of prctl(2)."""

ALLOW, ERROR = 0x7FFF_0000, 0x0005_0000
"""Actions of a filter; the number of an error is added to the second."""
NO_SUCH_CALL: Final = 38

LOAD, EQUAL, ANY_BIT, RETURN = 0x20, 0x15, 0x45, 0x06
"""Instructions: load a word of the call, jump if it equals or has a bit, return an action."""
NUMBER, ARCHITECTURE = 0, 4
"""Places of words in the description of a call."""
X32: Final = 0x4000_0000
"""Bit of the numbers of calls in x86's other 64-bit interface."""


class _Interface(NamedTuple):
    """Numbers of a processor's system calls, see syscalls(2)."""

    architecture: int
    setsid: int
    setpgid: int


_INTERFACES: Final = {
    "x86_64": _Interface(0xC000_003E, setsid=112, setpgid=109),
    "aarch64": _Interface(0xC000_00B7, setsid=157, setpgid=154),
}


class _Instruction(ctypes.Structure):
    _fields_ = (
        ("code", ctypes.c_uint16),
        ("if_true", ctypes.c_uint8),
        ("if_false", ctypes.c_uint8),
        ("operand", ctypes.c_uint32),
    )


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_uint16), ("filter", ctypes.POINTER(_Instruction)))


def stay_in_group() -> bool:
    """Keep this process, of one thread, and all that it starts in its group and session for good.

    Calls that would move one seem to work and do nothing. Nor can it gain rights by programs of
    other users. Calls in the form of another processor are refused.

    Returns:
      Whether this system can do that: Linux with seccomp, on x86-64 or 64-bit ARM.
    """
    interface = _INTERFACES.get(platform.machine())
    if sys.platform != "linux" or interface is None or ctypes.sizeof(ctypes.c_void_p) != 8:
        return False
    instructions = (
        (LOAD, 0, 0, ARCHITECTURE),
        (EQUAL, 0, 5, interface.architecture),
        (LOAD, 0, 0, NUMBER),
        (ANY_BIT, 3, 0, X32),
        (EQUAL, 3, 0, interface.setsid),
        (EQUAL, 2, 0, interface.setpgid),
        (RETURN, 0, 0, ALLOW),
        (RETURN, 0, 0, ERROR + NO_SUCH_CALL),
        (RETURN, 0, 0, ERROR),
    )
    array = (_Instruction * len(instructions))(*(_Instruction(*each) for each in instructions))
    program = _Program(len(instructions), array)
    prctl(SET_NO_NEW_PRIVILEGES, 1)
    return prctl(SET_SECCOMP, MODE_FILTER, ctypes.addressof(program))
