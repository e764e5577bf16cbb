"""Lifelong-learning protocol of the L2M Metrics Framework (4 December 2019)."""

from typing import TYPE_CHECKING

from evaluation.lazy import exports

if TYPE_CHECKING:
    from evaluation.l2m.build import (
        Syllabus,
        continual,
        episodes,
        interference,
        parametric_transfer,
        transfer,
    )
    from evaluation.l2m.curriculum import (
        Curriculum,
        EvalBlock,
        InterleavedEvalCurriculum,
        LearnBlock,
        TaskBlock,
        TaskVariant,
    )
    from evaluation.l2m.syllabus import SyllabusError, dumps, load, loads
    from evaluation.l2m.validate import Verdict, check_file, check_text

_HOMES = {
    "Curriculum": "curriculum",
    "EvalBlock": "curriculum",
    "InterleavedEvalCurriculum": "curriculum",
    "LearnBlock": "curriculum",
    "Syllabus": "build",
    "SyllabusError": "syllabus",
    "TaskBlock": "curriculum",
    "TaskVariant": "curriculum",
    "Verdict": "validate",
    "check_file": "validate",
    "check_text": "validate",
    "continual": "build",
    "dumps": "syllabus",
    "episodes": "build",
    "interference": "build",
    "load": "syllabus",
    "loads": "syllabus",
    "parametric_transfer": "build",
    "transfer": "build",
}

__all__ = [
    "Curriculum",
    "EvalBlock",
    "InterleavedEvalCurriculum",
    "LearnBlock",
    "Syllabus",
    "SyllabusError",
    "TaskBlock",
    "TaskVariant",
    "Verdict",
    "check_file",
    "check_text",
    "continual",
    "dumps",
    "episodes",
    "interference",
    "load",
    "loads",
    "parametric_transfer",
    "transfer",
]

__getattr__, __dir__ = exports(__name__, _HOMES)
