"""Islands of docs/novelty.md: an example, and all parameters."""

from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

import jaxsim
from jaxsim.parameters import Parameter
from tools.islands import Islands, table

ROOT = Path(__file__).parents[1]
SYLLABUS = "examples/syllabi/composed_novelty.json"
GROUPS = {
    "novelty": "Level",
    "": "World",
    "actions": "Pushes",
    "sensors": "Sensors",
    "cart": "Cart",
    "pole": "Pole",
    "blocks": "Blocks",
    "spawn": "New blocks",
    "walls": "Walls",
    "room": "Room",
    "wind": "Wind",
    "drag": "Drag",
    "start": "Start",
    "repairs": "Repairs",
}
"""Titles of the groups of parameters, by the first part of their paths, in the page's order."""


def group(row: Parameter) -> str:
    """First part of a path, "" for a path of one part."""
    first, slash, _ = row.path.partition("/")
    return first if slash else ""


def accepted(row: Parameter) -> str:
    """Values that a parameter accepts, without the unit."""
    if row.choices:
        return ", ".join(str(choice) for choice in row.choices)
    whole = ", whole" if isinstance(row.default, int) else ""
    return f"{row.low:g} to {row.high:g}{whole}"


def first_with_table() -> dict[str, str]:
    """For each environment, the first one with the same parameters."""
    ids = jaxsim.registered_envs()
    tables = {env_id: jaxsim.spec(env_id).parameters for env_id in ids}
    return {one: next(other for other in ids if tables[other] == tables[one]) for one in ids}


def parameters(env_id: str) -> Iterator[str]:
    """Parameters of an environment, group by group."""
    order = list(GROUPS)
    members = sorted(jaxsim.spec(env_id).parameters.values(), key=lambda r: order.index(group(r)))
    rows = []
    for name, in_group in groupby(members, key=group):
        title = GROUPS[name]
        for row in in_group:
            default = f"{row.default:g}" if isinstance(row.default, float) else row.default
            rows.append((title, f"`{row.path}`", default, accepted(row), row.unit, row.description))
            title = ""
    return table(("group", "path", "default", "accepted", "unit", "what"), rows)


def islands() -> Islands:
    """Islands of the page."""
    syllabus = (ROOT / SYLLABUS).read_text(encoding="utf-8").rstrip()
    tables = {env_id: parameters(env_id) for env_id in dict.fromkeys(first_with_table().values())}
    return {"syllabus": ["```json", syllabus, "```"], **tables}
