"""``python -m evaluation.calc_metrics``: the metrics of a 2019 log with custom ones added."""

from evaluation.l2m.report2019.commands import calc_metrics

if __name__ == "__main__":
    raise SystemExit(calc_metrics())
