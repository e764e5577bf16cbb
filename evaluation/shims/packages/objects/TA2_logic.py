"""`objects.TA2_logic`: what agents for the WSU generator derive from."""

from evaluation.sailon.ta2 import TA2Logic

__all__ = ["TA2Logic"]
