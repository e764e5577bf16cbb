"""Compiled programs that commands keep between runs."""
