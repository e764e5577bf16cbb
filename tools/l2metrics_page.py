"""Islands of docs/l2metrics.md, measured by `benchmarks.l2metrics`."""

from collections.abc import Iterator, Mapping

from evaluation.json_types import JsonObject
from evaluation.metrics.l2m.lifetimes import SINGLE_ATOL, SINGLE_RTOL
from tools.islands import NONE, Islands, measured, table


def islands() -> Islands:
    """Islands of the page."""
    values = measured("l2metrics.json")
    machine, same = values["machine"], values["same_numbers"]
    versions = f"Python {machine['python']}, NumPy {machine['numpy']}"
    return {
        "machine": f"{machine['cores']} cores ({machine['machine']}, {versions})",
        "repeats": f"{values['repeats']} runs",
        "commands": commands(values["end_to_end"]),
        "same": "not compared" if same is None else f"all {same:,} lifetime numbers are equal",
        "kernels": kernels(values["kernels"]),
        "lifetimes": f"{values['lifetimes']:,} lifetimes",
        "records": records(values["records"]),
        "float32": f"{SINGLE_ATOL:g} + {SINGLE_RTOL:g} times the number",
    }


def commands(rows: list[JsonObject]) -> Iterator[str]:
    """Times of the command beside the peer's."""

    def cells(row: JsonObject) -> tuple[str, ...]:
        ours, peer = row["ours"], row["peer"]
        theirs = (NONE, NONE) if peer is None else (f"{peer:.2f}", f"{peer / ours:.1f}")
        return row["case"], f"{ours:.2f}", *theirs

    head = ("`jaxsim l2metrics -R`", "ours, CPU s", "l2metrics 3.1, CPU s", "times less")
    return table(head, map(cells, rows))


def kernels(seconds: Mapping[str, float]) -> Iterator[str]:
    """Times of the metrics alone, by array module and precision."""
    rows = ((name, f"{number:.3f}") for name, number in seconds.items())
    return table(("kernels alone", "CPU s"), rows)


def records(seconds: Mapping[str, Mapping[str, float]]) -> Iterator[str]:
    """Times of all metrics from records."""
    rows = (
        (precision, f"{of['seconds']:.2f}", f"{of['cpu_seconds']:.2f}")
        for precision, of in seconds.items()
    )
    return table(("precision", "seconds", "CPU s"), rows)
