"""Metrics of lifelong learning: those of the 2019 framework document and those of today."""
