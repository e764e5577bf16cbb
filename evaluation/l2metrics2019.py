"""``python -m evaluation.l2metrics2019``: the metrics of a 2019 log, with the flags of 2019."""

from evaluation.l2m.report2019.commands import l2metrics

if __name__ == "__main__":
    raise SystemExit(l2metrics())
