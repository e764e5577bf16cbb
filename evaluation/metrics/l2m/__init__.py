"""Metrics of lifelong learning: of the 2019 framework document and of l2metrics 3.1."""
