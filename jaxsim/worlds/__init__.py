"""The worlds, one folder each, always the same files.

`world` is the base of all, and `sharing` says which tasks share a program.
"""
