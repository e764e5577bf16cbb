"""Lifelong-learning protocol of the L2M Metrics Framework (4 December 2019)."""

from typing import TYPE_CHECKING

from evaluation.lazy import exports

if TYPE_CHECKING:
    from evaluation.l2m.build import Syllabus as Syllabus
    from evaluation.l2m.build import continual as continual
    from evaluation.l2m.build import episodes as episodes
    from evaluation.l2m.build import interference as interference
    from evaluation.l2m.build import parametric_transfer as parametric_transfer
    from evaluation.l2m.build import transfer as transfer
    from evaluation.l2m.curriculum import Curriculum as Curriculum
    from evaluation.l2m.curriculum import EvalBlock as EvalBlock
    from evaluation.l2m.curriculum import InterleavedEvalCurriculum as InterleavedEvalCurriculum
    from evaluation.l2m.curriculum import LearnBlock as LearnBlock
    from evaluation.l2m.curriculum import TaskBlock as TaskBlock
    from evaluation.l2m.curriculum import TaskVariant as TaskVariant
    from evaluation.l2m.syllabus import SyllabusError as SyllabusError
    from evaluation.l2m.syllabus import dumps as dumps
    from evaluation.l2m.syllabus import load as load
    from evaluation.l2m.syllabus import loads as loads
    from evaluation.l2m.validate import Verdict as Verdict
    from evaluation.l2m.validate import check_file as check_file
    from evaluation.l2m.validate import check_text as check_text

__getattr__, __dir__ = exports(__name__)
