"""Islands of docs/gpu.md, from what `make gpu-check` measured."""

from collections.abc import Iterator

from evaluation.json_types import JsonObject
from tools.islands import Islands, measured, table


def checks(values: JsonObject) -> Iterator[str]:
    """What holds on the device, and how fast it plays."""
    device, bench = values["device"], values["bench"]
    ticks, same = values["parity"]["ticks"]["free"], values["same"]
    errors = (ticks[name] for name in ("cart_velocity", "pole_rate", "block_velocity"))
    ways = [
        f"{way}: {'equal' if equal else '**different**'}" for way, equal in same["same"].items()
    ]
    rows = [
        ["device", f"{', '.join(device['devices'])}, JAX {device['jax']}"],
        [
            f"largest errors of {ticks['ticks']} ticks without contact, float64 (m/s, rad/s, m/s)",
            ", ".join(f"{error:.1g}" for error in errors),
        ],
        [f"records of {same['steps']:,} steps", "; ".join(ways)],
    ]
    for row in bench["rows"]:
        facts = row["facts"]
        what = f"`{row['workload']}`, {facts['episodes']:,} episodes a call"
        rate = f"{row['steps_per_wall_second'] / 1e6:.0f} million steps a second"
        rows.append([what, f"{rate}; compiled in {row['compile_seconds']:.0f} s"])
    first = bench["first_result_seconds"], bench["first_result_cached_seconds"]
    rows += [
        [f"first result of a process{how}", f"{of['default']:.1f} s"]
        for how, of in zip(("", ", with the compilation cache filled"), first, strict=True)
    ]
    yield from table(["what", "result"], rows)


def layouts(values: JsonObject) -> Iterator[str]:
    """Speed by layout."""
    rows = [
        [
            f"{row['lanes']:,}",
            row["ticks"],
            ", ".join(f"{lanes:,}" for lanes in row["groups"]),
            f"{row['turns']:,}",
            f"{row['steps_per_second'] / 1e6:.0f}",
        ]
        for row in values["layouts"]["rows"]
    ]
    head = [
        "lanes",
        "steps in a row",
        "lanes of a group",
        "lanes of a turn",
        "million steps a second",
    ]
    yield from table(head, rows)


def graphs(values: JsonObject) -> Iterator[str]:
    """Speed with loops that are graphs of kernels and with others."""
    rows = [
        [
            f"`{row['workload']}`, {row['episodes']:,} episodes a call",
            row["search"],
            "yes" if row["graphs"] else "no",
            f"{row['steps_per_second'] / 1e6:.0f}",
        ]
        for row in values["graphs"]["rows"]
    ]
    yield from table(["workload", "search", "graphs", "million steps a second"], rows)


def islands() -> Islands:
    """Islands of the page."""
    values = measured("gpu.json")
    return {"checks": checks(values), "layouts": layouts(values), "graphs": graphs(values)}
