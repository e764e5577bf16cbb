"""`aivle_grader.abc`: what suites and submissions derive from."""
