"""What the original generator sends and says: messages, hints, quirks, its domain file."""
