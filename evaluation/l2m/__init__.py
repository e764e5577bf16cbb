"""Lifelong-learning protocol of the L2M Metrics Framework (4 December 2019): syllabi."""

from evaluation.l2m.syllabus import SyllabusError, dumps, load, loads

__all__ = ["SyllabusError", "dumps", "load", "loads"]
