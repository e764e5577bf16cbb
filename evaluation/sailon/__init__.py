"""SAIL-ON: novelty experiments, the agent interface of the WSU generator, and their metrics."""
