"""The command ``jaxsim l2metrics``: the flags and the files of l2metrics 3.1."""

import argparse

from evaluation.arguments import Commands, add_command

EPILOG = """examples:
  jaxsim l2metrics -l logs/expert-1 -s w            # store a single-task expert
  jaxsim l2metrics -l logs/my-run -p performance
  jaxsim l2metrics -l logs -R -O results -m both -t both
  jaxsim l2metrics -l logs -R --statistics -d ranges.json
  jaxsim l2metrics -l logs/my-run --metric examples/metrics/learning_range.py
  jaxsim l2metrics -l logs/my-run --compat l2metrics-3.1

Writes <name>_settings.json, <name>_metrics.json, <name>_regime.tsv and <name>_data.feather, or with
-R ll_metrics*.{json,tsv,feather}; --statistics adds ll_metrics_statistics.json, with mean, median,
interquartile mean and standard deviation over the logs and 95 % intervals. JSON is strict: a
missing number is null, and "why" has its reason. Without --compat the defects of l2metrics 3.1 are
fixed, and the JSON lists each number that differs, with both values and the reason. Each run with
an error gives one line on standard error; the others are computed, and the exit code is 2.
"""


_WINDOWS = "flat hanning hamming bartlett blackman none"


def add_to(commands: Commands) -> None:
    """Add the command to the subparsers of the program."""
    parser = add_command(
        commands,
        "l2metrics",
        "compute lifelong-learning metrics from l2logger logs, as l2metrics 3.1 or better",
        EPILOG,
    )
    _add_inputs(parser)
    _add_methods(parser)
    _add_outputs(parser)
    parser.set_defaults(handler=_handle)


def _add_inputs(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("-l", "--log-dir", metavar="DIR", help="a log, or a name in $L2DATA/logs")
    add("-R", "--recursive", action="store_true", help="every log below DIR")
    add(
        "-s",
        "--ste-store-mode",
        choices=("w", "a"),
        help="store the log as a single-task expert: w replaces the runs of the task, a appends",
    )
    add("--clear-ste", action="store_true", help="delete every stored single-task expert")
    add("-c", "--load-settings", metavar="JSON", help="settings file; overrides the flags")
    add("-d", "--data-range-file", metavar="JSON", help="performance range of each task")


def _add_methods(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--compat", choices=("l2metrics-3.1",), help="reproduce it number for number, with defects")
    for short, name, choices, text in (
        ("-r", "variant-mode", "aware agnostic", "whether task variants are separate tasks"),
        ("-v", "ste-averaging-method", "metrics time", "what is averaged over expert runs"),
        ("-a", "aggregation-method", "mean median", "average over tasks"),
        ("-m", "maintenance-method", "mrlep mrtlp both", "reference of later tests"),
        ("-t", "transfer-method", "ratio contrast both", "comparison of two tests"),
        ("-n", "normalization-method", "task run none", "range that is mapped to 1 to 101"),
        ("-g", "smoothing-method", _WINDOWS, "smoothing window"),
    ):
        words = choices.split()
        add(short, f"--{name}", choices=words, default=words[0], help=f"{text} ({words[0]})")
    add("-p", "--perf-measure", default="reward", metavar="COLUMN", help="performance (reward)")
    add("-G", "--smooth-eval-data", action="store_true", dest="do_smooth_eval_data",
        help="smooth test regimes too")  # fmt: skip
    add("-w", "--window-length", type=int, metavar="N", help="episodes (a fifth of a regime)")
    add(
        "-x", "--clamp-outliers", action="store_true", help="clamp to the 10 %% and 90 %% quantiles"
    )
    add("-N", "--noise", type=float, nargs=2, default=(0.0, 0.0), metavar=("MEAN", "STD"),
        help="Gaussian noise (0 0)")  # fmt: skip
    add("--metric", action="append", default=[], metavar="FILE[:NAME]",
        help="also compute the metrics of a Python file; repeatable")  # fmt: skip
    add("--noise-seed", type=int, default=0, metavar="N", help="of the noise (0)")


def _add_outputs(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add(
        "-O",
        "--output-dir",
        default="results",
        metavar="DIR",
        help="directory of the files (results)",
    )
    add("-o", "--output", metavar="NAME", help="beginning of the file names (name of the log)")
    add("--statistics", action="store_true", help="with -R: also statistics over the logs")
    add("--seed", type=int, default=0, metavar="N", help="of the intervals (0)")
    add(
        "-u",
        "--unit",
        choices=("exp_num", "steps"),
        default="exp_num",
        help="axis of plots (exp_num)",
    )
    for flags, name, default, text in (
        (("-e", "--show-eval-lines"), "show_eval_lines", True, "lines between tests in plots (on)"),
        (("-P", "--plot", "--do-plot"), "do_plot", False, "plot; needs the extra for plots (off)"),
        (("-S", "--do-save"), "do_save", True, "save metrics (on)"),
        (("-C", "--do-save-settings"), "do_save_settings", True, "save settings (on)"),
    ):
        add(*flags, action="store_true", dest=name, default=default, help=text)
    for flag, name in (
        ("--no-show-eval-lines", "show_eval_lines"),
        ("--no-plot", "do_plot"),
        ("--no-save", "do_save"),
        ("--no-save-settings", "do_save_settings"),
    ):
        add(flag, action="store_false", dest=name, help="off")
    add(
        "-T",
        "--plot-types",
        nargs="+",
        choices=("all", "raw", "eb", "lb", "ste"),
        default=["all"],
        help="kinds of plots (all)",
    )


def _handle(arguments: argparse.Namespace) -> int:
    from evaluation.l2m.l2metrics.job import run_command

    return run_command(arguments)
