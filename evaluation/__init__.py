"""Evaluation protocols over one schedule, two engines and one table of records."""

from jaxsim import __version__

__all__ = ["__version__"]
