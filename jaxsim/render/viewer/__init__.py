"""A viewer of episodes in one HTML file that needs nothing else, not even a network.

film = viewer.film(env, params, states, title="level 203", action=actions, reward=rewards)
text = viewer.page([film], "Two agents, one start")
viewer.Viewer([film])  # at the end of a notebook's cell
"""

from jaxsim.render.viewer.contacts import CONTACTS, contacts
from jaxsim.render.viewer.film import Film, Predictions, film, poses
from jaxsim.render.viewer.page import MOST_FILMS, Viewer, page

__all__ = [
    "CONTACTS",
    "MOST_FILMS",
    "Film",
    "Predictions",
    "Viewer",
    "contacts",
    "film",
    "page",
    "poses",
]
