"""Classification learning of the L2M Metrics Framework: syllabi, courses, learners, logs."""
