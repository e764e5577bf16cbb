"""Identification of novelties: which parameters of CartPole3D changed, and to what.

>>> from jaxsim import identification
>>> result = identification.identify([identification.ObservedEpisode(observations, actions)])
>>> result.families, result.values

Families are named by what explains the observations, also where two are composed.

| module | subject |
| --- | --- |
| `episodes` | `identify`, and its result |
| `ticks` | errors of one-tick predictions under many hypotheses |
| `fits` | robust fits of parameters to transitions |
| `physics` | families, one or two, as explanations of transitions |
| `readings` | errors of the sensors, without any model of forces |
| `kinematics` | noisy or rounded readings, computed again from exact ones |
| `starts` | starts of episodes, new blocks, ends |
| `estimates` | numbers with their standard errors |
"""

from jaxsim.identification.episodes import Identification, identify
from jaxsim.identification.estimates import Estimate
from jaxsim.identification.ticks import ObservedEpisode

__all__ = ["Estimate", "Identification", "ObservedEpisode", "identify"]
