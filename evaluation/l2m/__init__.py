"""Lifelong-learning protocol of the L2M Metrics Framework (4 December 2019).

| module | subject |
| --- | --- |
| `syllabus` | syllabi as JSON: reading and writing |
| `document` | strict decoding, with line and column |
| `instructions` | instructions of a syllabus as blocks |
| `variants` | task and parameters of an episode |
| `rules` | subtypes of syllabi and their rules |
| `validate` | all findings on a syllabus file |
| `commands` | `jaxsim validate` |
| `build` | syllabi built in Python |
| `writer` | schedules as syllabi |
| `curriculum` | curricula as in tella |
| `run` | run of a syllabus, with result files |
| `shards` | parts of a large run, and their joining |
| `l2metrics` | metrics of l2metrics 3.1 from logs |
| `report2019` | metrics of a 2019 log |
| `classification` | classification learning |
| `ste_info` | saturation values of experts, as of 2019 |
| `ste_sources` | single-task experts from logs and records |
| `ste_store` | store of single-task experts |
| `ste_commands` | `jaxsim l2m ste` |
"""

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
