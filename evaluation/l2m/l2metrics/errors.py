"""Errors of logs and settings, by name."""

from enum import StrEnum


class ErrorKind(StrEnum):
    """Names of errors, as printed and in the result files."""

    NO_DIRECTORY = "no-such-directory"
    NO_LOGGER_INFO = "no-logger-info"
    NO_SCENARIO_INFO = "no-scenario-info"
    BAD_INFO = "bad-info-file"
    NO_DATA_LOG = "no-data-log"
    BAD_TABLE = "bad-table"
    MISSING_COLUMN = "missing-column"
    BAD_NUMBER = "bad-number"
    BAD_BLOCK_TYPE = "bad-block-type"
    BAD_BLOCK_SUBTYPE = "bad-block-subtype"
    BAD_EXP_STATUS = "bad-exp-status"
    BAD_WORKER = "bad-worker-id"
    BAD_TASK_PARAMS = "bad-task-params"
    BAD_TIMESTAMP = "bad-timestamp"
    BLOCK_ORDER = "block-num-falls"
    NO_VARIANT = "task-without-variant"
    ONE_ROW = "one-row"
    NO_COMPLETE_ROW = "no-complete-row"
    ALL_NAN = "no-value"
    NOT_FINITE = "not-finite"
    UNKNOWN_MEASURE = "unknown-perf-measure"
    RANGE_FILE = "bad-range-file"
    RANGE_INCOMPLETE = "range-for-missing-task"
    RANGE_KEYS = "range-without-min-or-max"
    WINDOW = "bad-window-length"
    STE_TASKS = "ste-not-one-task"
    STE_ONE_ROW = "ste-one-row"
    STE_FILE = "bad-ste-file"
    SETTINGS = "bad-settings"
    NO_STEPS = "no-step-counts"
    NO_RUNS = "no-runs"
    CUSTOM_METRIC = "bad-custom-metric"


class L2MetricsError(ValueError):
    """Metrics cannot be computed.

    Attributes:
      kind: name of the error.
    """

    def __init__(self, kind: ErrorKind, message: str) -> None:
        """Put the name in front of the message."""
        self.kind = kind
        super().__init__(f"{kind}: {message}")
