"""An episode of the session, watched tick by tick."""

from dataclasses import dataclass, field
from typing import Any

import jax
import numpy as np

from evaluation.session import Episode, Player, Prediction
from jaxsim.render import viewer
from jaxsim.worlds.cartpole3d.types import ACTIONS


@dataclass
class Recording:
    """What a film is made of, as it comes.

    Attributes:
      episode: in play.
    """

    episode: Episode
    _states: list[Any] = field(default_factory=list, init=False)
    _actions: list[int] = field(default_factory=list, init=False)
    _rewards: list[float] = field(default_factory=list, init=False)
    _said: list[Prediction] = field(default_factory=list, init=False)

    def __post_init__(self) -> None:
        """Keep the first state."""
        self._states.append(self.episode.state)

    def step(self, action: int, said: Prediction | None = None) -> None:
        """Advance the episode and keep what came of it."""
        self.episode.step(action)
        self._states.append(self.episode.state)
        self._actions.append(int(action))
        self._rewards.append(self.episode.reward)
        if said is not None:
            self._said.append(said)

    def play(self, player: Player) -> None:
        """Let a player play the episode to its end; it does not learn from it."""
        player.begin(self.episode)
        while not self.episode.over:
            action, said = player.act(self.episode.observation)
            self.step(action, said.checked())

    def predict(self, said: Prediction) -> None:
        """Take what was said at the end for the whole episode."""
        self._said = [said] * len(self._actions)

    def film(self, title: str, facts: str, note: str, true_level: int | None) -> viewer.Film:
        """Return the film.

        Args:
          title: for people.
          facts: a line below it.
          note: a warning; "" for none.
          true_level: of the novelty catalogue, 0 for none; None for unknown.
        """
        env, params = self.episode.env, self.episode.params
        states = jax.tree.map(lambda *leaves: np.stack(leaves), *self._states)
        said = None
        if self._said and any(one != Prediction() for one in self._said):
            columns = zip(*((s.level, s.probability, s.threshold) for s in self._said), strict=True)
            said = viewer.Said(*columns)
        named = {"names": ACTIONS} if env.num_actions == len(ACTIONS) else {}
        return viewer.film(
            env,
            params,
            states,
            title=title,
            facts=facts,
            note=note,
            action=self._actions,
            reward=self._rewards,
            said=said,
            novel=bool(true_level),
            truth=_truth(true_level),
            **named,
        )


def _truth(level: int | None) -> str:
    if level is None:
        return "not known"
    return f"novel, level {level}" if level else "not novel"
