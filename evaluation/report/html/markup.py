"""HTML tables of a report's JSON; each number carries its JSON pointer and full value."""

import html
from collections.abc import Mapping, Sequence

from evaluation.json_types import JsonMapping, JsonValue
from evaluation.metrics.table import BY_NAME

TALL = 30
"""Rows beyond which a table scrolls by itself."""


def number(value: JsonValue, path: str) -> str:
    """Return a number of the JSON as HTML, shown with four digits."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return html.escape(str(value))
    place = html.escape(path, quote=True)
    return f'<span data-path="{place}" data-value="{value!r}">{shown(value)}</span>'


def shown(value: float) -> str:
    """Text of a number, with four digits or thousands separators."""
    return f"{value:,}" if isinstance(value, int) else f"{value:.4g}"


def is_entry(value: JsonValue) -> bool:
    """Whether a JSON value is a number with an interval."""
    return isinstance(value, Mapping) and ("mean" in value or "value" in value) and "low" in value


def entry(value: JsonMapping, path: str) -> str:
    """HTML of a number with its interval, or of the reason why it is missing."""
    name = "mean" if "mean" in value else "value"
    if value[name] is None:
        reason = value.get("reason", "no value")
        return f'<span class="reason">{html.escape(str(reason))}</span>'
    text = number(value[name], f"{path}/{name}")
    if value["low"] is None:
        return text
    low = number(value["low"], f"{path}/low")
    # An upper end that is missing beside a lower one is beyond all that was observed.
    high = "∞)" if value["high"] is None else number(value["high"], f"{path}/high") + "]"
    return f'{text} <span class="low">[{low}, {high}</span>'


def cell(value: JsonValue, path: str) -> str:
    """HTML of any JSON value."""
    if is_entry(value):
        return entry(value, path)
    if value is None:
        return '<span class="reason">none</span>'
    if isinstance(value, Mapping):
        inside = (f"{html.escape(str(k))} {cell(v, pointer(path, k))}" for k, v in value.items())
        return "; ".join(inside)
    if isinstance(value, Sequence) and not isinstance(value, str):
        return ", ".join(cell(v, f"{path}/{i}") for i, v in enumerate(value))
    return number(value, path)


def table(head: Sequence[str], rows: Sequence[Sequence[str]], caption: str = "") -> str:
    """An HTML table; cells are HTML, headings are text."""
    heads = "".join(f'<th scope="col">{html.escape(name)}</th>' for name in head)
    body = "".join(f"<tr>{''.join(f'<td>{c}</td>' for c in row)}</tr>" for row in rows)
    tall = " tall" if len(rows) > TALL else ""
    label = html.escape(caption or head[0], quote=True)
    return (
        f'<div class="scroll{tall}" tabindex="0" role="region" aria-label="Table: {label}"><table>'
        f"<thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def facts(values: JsonMapping, path: str = "") -> str:
    """A table of names and values."""
    rows = [
        [html.escape(k.replace("_", " ")), cell(v, pointer(path, k))] for k, v in values.items()
    ]
    return table(("what", "value"), rows, "facts")


def metrics(values: JsonMapping, path: str) -> str:
    """A table of metrics, each with its interval and meaning."""
    rows = [
        [
            html.escape(name.replace("_", " ")),
            cell(value, pointer(path, name)),
            html.escape(BY_NAME[name].text if name in BY_NAME else ""),
        ]
        for name, value in values.items()
    ]
    return table(("metric", "mean [95 % interval]", "what it means"), rows, f"metrics of {path}")


def records(values: Sequence[JsonMapping], path: str) -> str:
    """A table of JSON objects with the same fields; objects of entries become columns."""
    flat = [dict(_columns(value, f"{path}/{i}")) for i, value in enumerate(values)]
    names = list(dict.fromkeys(name for row in flat for name in row))
    rows = [[row.get(name, "") for name in names] for row in flat]
    return table([name.replace("_", " ") for name in names], rows, path.strip("/"))


def _columns(value: JsonMapping, path: str) -> list[tuple[str, str]]:
    columns: list[tuple[str, str]] = []
    for name, inside in value.items():
        place = pointer(path, name)
        if isinstance(inside, Mapping) and inside and all(map(is_entry, inside.values())):
            columns += [(key, entry(one, pointer(place, key))) for key, one in inside.items()]
        else:
            columns.append((name, cell(inside, place)))
    return columns


def pointer(path: str, name: str) -> str:
    """JSON pointer (RFC 6901) of a field."""
    return f"{path}/{name.replace('~', '~0').replace('/', '~1')}"
