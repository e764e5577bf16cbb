"""Metrics of novelty experiments: detection, reaction, characterisation.

The kernels are pure functions from padded arrays of trials, NumPy or JAX, to numbers with reasons.
`rows` reduces them over trials, with intervals.
"""

from evaluation.metrics.novelty.cells import CellMeasures as CellMeasures
from evaluation.metrics.novelty.cells import Labels as Labels
from evaluation.metrics.novelty.cells import kaplan_meier_median as kaplan_meier_median
from evaluation.metrics.novelty.cells import rows as rows
from evaluation.metrics.novelty.characterisation import Characterisation as Characterisation
from evaluation.metrics.novelty.characterisation import characterisation as characterisation
from evaluation.metrics.novelty.characterisation import slot_accuracy as slot_accuracy
from evaluation.metrics.novelty.detection import Confusion as Confusion
from evaluation.metrics.novelty.detection import Detection as Detection
from evaluation.metrics.novelty.detection import ThresholdIndex as ThresholdIndex
from evaluation.metrics.novelty.detection import amoc_delay as amoc_delay
from evaluation.metrics.novelty.detection import amoc_wsu as amoc_wsu
from evaluation.metrics.novelty.detection import confusion as confusion
from evaluation.metrics.novelty.detection import correct_rejections as correct_rejections
from evaluation.metrics.novelty.detection import delay_of_detected as delay_of_detected
from evaluation.metrics.novelty.detection import detection as detection
from evaluation.metrics.novelty.detection import threshold_index as threshold_index
from evaluation.metrics.novelty.measures import Answers as Answers
from evaluation.metrics.novelty.measures import measures as measures
from evaluation.metrics.novelty.measures import no_words as no_words
from evaluation.metrics.novelty.reaction import WINDOW_SHARE as WINDOW_SHARE
from evaluation.metrics.novelty.reaction import Reaction as Reaction
from evaluation.metrics.novelty.reaction import reaction as reaction
from evaluation.metrics.novelty.reaction import window_of as window_of
from evaluation.metrics.novelty.trials import Trials as Trials
from evaluation.metrics.novelty.trials import custom_of_trials as custom_of_trials
