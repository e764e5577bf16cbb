"""``python calc_metrics.py``: the metrics of a 2019 log, and one more."""

from evaluation.l2m.report2019.commands import calc_metrics

if __name__ == "__main__":
    raise SystemExit(calc_metrics())
