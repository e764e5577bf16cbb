"""Environments of this package through the interfaces of other packages, each an extra."""
