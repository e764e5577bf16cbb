"""The worlds, one folder each, always the same files."""
