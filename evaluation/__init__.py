"""Evaluation protocols over one schedule, two engines and one table of records."""

from importlib.metadata import PackageNotFoundError, version

try:
    __version__ = version("jaxsim-novelty")
except PackageNotFoundError:  # a source tree that was never installed
    __version__ = "0+unknown"

__all__ = ["__version__"]
