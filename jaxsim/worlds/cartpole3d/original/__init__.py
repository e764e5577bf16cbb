"""Interface of the original generator: messages, hints, quirks, its domain file."""
