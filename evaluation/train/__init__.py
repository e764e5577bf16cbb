"""Training: one long run of a learning agent on one task, with a learning curve."""
