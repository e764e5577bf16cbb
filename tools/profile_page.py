"""Islands of docs/profile.md, measured by `benchmarks.rollout_profile`."""

from collections.abc import Iterator, Mapping

from evaluation.json_types import JsonMapping
from tools.islands import Islands, measured, table

Profiles = Mapping[str, JsonMapping]
"""Numbers of a profile by flags."""


def islands() -> Islands:
    """Islands of the page."""
    profiles = measured("profile.json")
    return {"parts": parts(profiles), "limits": limits(profiles), "packed": packed(profiles)}


def parts(profiles: Profiles) -> Iterator[str]:
    """Time of each part, ns of a step."""
    columns = profiles.values()
    names = next(iter(columns))["nanoseconds"]
    rows = [(part, *(f"{p['nanoseconds'][part]:.1f}" for p in columns)) for part in names]
    rows += [
        ("**all**", *(f"**{p['total']:.1f}**" for p in columns)),
        ("all, with free ticks at their limit", *(f"{p['least']:.1f}" for p in columns)),
    ]
    return table(("ns of a step", *profiles), rows)


def limits(profiles: Profiles) -> Iterator[str]:
    """Work of the free ticks, and the most that a core does."""
    columns = profiles.values()
    rows = (
        ("lanes at work", *(f"{100 * p['at_work']:.0f} %" for p in columns)),
        ("passes", *(p["passes"] for p in columns)),
        ("operations of a free tick", *(f"{p['operations']:,.0f}" for p in columns)),
        ("bytes that it moves", *(f"{p['bytes']:,.0f}" for p in columns)),
        ("operations a second in free ticks, 10^9", *(f"{p['free_rate']:.0f}" for p in columns)),
        ("most of a core, 10^9", *(f"{p['most_rate']:.0f}" for p in columns)),
    )
    return table(("number", *profiles), rows)


def packed(profiles: Profiles) -> Iterator[str]:
    """Steps, groups and time of the packed work."""
    columns = [profile["packed"] for profile in profiles.values()]
    names = dict.fromkeys(part for column in columns for part in column)
    rows = ((part, *(_packed(column.get(part)) for column in columns)) for part in names)
    return table(("steps; groups; time of a group", *profiles), rows)


def _packed(part: JsonMapping | None) -> str:
    if part is None:
        return ""
    return f"{100 * part['share']:.1f} %; {part['groups']:,}; {part['microseconds']:.0f} us"
