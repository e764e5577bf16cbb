"""Islands of docs/parity.md, measured by `benchmarks.parity`."""

from collections.abc import Callable, Iterator, Sequence

from evaluation.json_types import JsonMapping
from tools.islands import Islands, measured, table

CONTACTS = {"free": "no contact", "wall": "walls", "pair": "blocks", "structure": "cart or pole"}
ERRORS = ("position (m)", "velocity (m/s)", "angle (rad)", "rate (rad/s)")

Rows = Sequence[JsonMapping]


def islands() -> Islands:
    """Islands of the page."""
    return islands_of(measured("parity.json"))


def islands_of(values: JsonMapping) -> Islands:
    """Islands of a comparison; a world that was left out has the reason in place of its tables."""
    rows = values["CartPole3D"].get("rows", [])
    same, episodes = (sum(row[key] for row in rows) for key in ("same_length", "episodes"))
    return {
        "one tick": _lines(values["CartPole3D"], ticks),
        "same length": f"{same} of {episodes} ({same / max(episodes, 1):.1%})",
        "closed loop": _lines(values["CartPole3D"], lengths),
        "CartPole2D": _lines(values["CartPole2D"], rail),
        "CartPole": _lines(values["CartPole"], classic),
    }


def _lines(world: JsonMapping, of_rows: Callable[[Rows], Iterator[str]]) -> Iterator[str]:
    if "missing" in world:
        return iter([f"Left out: {world['missing']}."])
    return of_rows(world["rows"])


def _name(row: JsonMapping) -> str:
    return f"{row['level']} {row['difficulty']}"


def ticks(rows: Rows) -> Iterator[str]:
    """Largest errors of one tick, by contact."""
    lines = (
        (_name(row), f"{row['reset']:.0e}", *(_tick(row["ticks"].get(kind)) for kind in CONTACTS))
        for row in rows
    )
    return table(("level", "reset", *CONTACTS.values()), lines)


def _tick(errors: JsonMapping | None) -> str:
    if errors is None:
        return ""
    names = ("cart_velocity", "pole_rate", "block_velocity")
    share = f", {errors['large']:.0%}" if errors["large"] else ""
    return f"{' / '.join(f'{errors[n]:.0e}' for n in names)} ({errors['ticks']}{share})"


def lengths(rows: Rows) -> Iterator[str]:
    """Episodes of the recorded length."""
    lines = ((_name(row), f"{row['same_length']} of {row['episodes']}") for row in rows)
    return table(("level", "same length"), lines)


def rail(rows: Rows) -> Iterator[str]:
    """Largest errors of free runs."""
    lines = ((_name(row), row["episodes"], *_errors(row)) for row in rows)
    return table(("level", "episodes", *ERRORS), lines)


def classic(rows: Rows) -> Iterator[str]:
    """Largest errors of one step, and episodes of the recorded length."""
    lines = (
        (row["dtype"], row["steps"], *_errors(row), f"{row['same_length']} of {row['episodes']}")
        for row in rows
    )
    return table(("type", "steps", *ERRORS, "same length"), lines)


def _errors(row: JsonMapping) -> Iterator[str]:
    return (f"{error:.0e}" for error in row["errors"].values())
