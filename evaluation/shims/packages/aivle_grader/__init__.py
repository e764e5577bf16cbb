"""aiVLE's grader: the names of `aivle_grader` for `evaluation.grader`."""

from evaluation.grader import *  # noqa: F403
