"""Metrics of novelty experiments: detection, reaction, characterisation.

The kernels are pure functions from padded arrays of trials to numbers with reasons, for NumPy and
JAX arrays alike; `rows` reduces them over trials, with intervals.
"""

from evaluation.metrics.novelty.cells import Labels, Row, kaplan_meier_median, rows, wilson
from evaluation.metrics.novelty.characterisation import (
    Characterisation,
    characterisation,
    slot_accuracy,
)
from evaluation.metrics.novelty.detection import (
    Confusion,
    Detection,
    ThresholdIndex,
    amoc_delay,
    amoc_wsu,
    confusion,
    correct_rejections,
    delay_of_detected,
    detection,
    threshold_index,
)
from evaluation.metrics.novelty.measures import Said, measures, no_words
from evaluation.metrics.novelty.reaction import WINDOW_SHARE, Reaction, reaction, window_of
from evaluation.metrics.novelty.trials import Trials, own_of_trials

__all__ = [
    "WINDOW_SHARE",
    "Characterisation",
    "Confusion",
    "Detection",
    "Labels",
    "Reaction",
    "Row",
    "Said",
    "ThresholdIndex",
    "Trials",
    "amoc_delay",
    "amoc_wsu",
    "characterisation",
    "confusion",
    "correct_rejections",
    "delay_of_detected",
    "detection",
    "kaplan_meier_median",
    "measures",
    "no_words",
    "own_of_trials",
    "reaction",
    "rows",
    "slot_accuracy",
    "threshold_index",
    "wilson",
    "window_of",
]
