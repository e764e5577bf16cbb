"""An episode of the session, recorded tick by tick."""

from dataclasses import dataclass, field

import jax
import numpy as np

from evaluation.session import Episode, Player, Prediction
from jaxsim.pytrees import State
from jaxsim.render import viewer
from jaxsim.worlds.cartpole3d.types import ACTIONS


@dataclass
class Recording:
    """Collects the data of a film while an episode is played.

    Attributes:
      episode: in play.
    """

    episode: Episode
    _states: list[State] = field(default_factory=list, init=False)
    _actions: list[int] = field(default_factory=list, init=False)
    _rewards: list[float] = field(default_factory=list, init=False)
    _predictions: list[Prediction] = field(default_factory=list, init=False)

    def __post_init__(self) -> None:
        """Keep the first state."""
        self._states.append(self.episode.state)

    def step(self, action: int, prediction: Prediction | None = None) -> None:
        """Advance the episode and record the outcome."""
        self.episode.step(action)
        self._states.append(self.episode.state)
        self._actions.append(int(action))
        self._rewards.append(self.episode.reward)
        if prediction is not None:
            self._predictions.append(prediction)

    def play(self, player: Player) -> None:
        """Let a player play the episode to its end; it does not learn from it."""
        player.begin(self.episode)
        while not self.episode.over:
            action, prediction = player.act(self.episode.observation)
            self.step(action, prediction.checked())

    def predict(self, prediction: Prediction) -> None:
        """Use the prediction of the end for every tick of the episode."""
        self._predictions = [prediction] * len(self._actions)

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
        predictions = None
        if self._predictions and any(one != Prediction() for one in self._predictions):
            columns = zip(
                *((s.level, s.probability, s.threshold) for s in self._predictions), strict=True
            )
            predictions = viewer.Predictions(*columns)
        options = {"names": ACTIONS} if env.num_actions == len(ACTIONS) else {}
        return viewer.film(
            env,
            params,
            states,
            title=title,
            facts=facts,
            note=note,
            action=self._actions,
            reward=self._rewards,
            predictions=predictions,
            novel=bool(true_level),
            truth=_truth(true_level),
            **options,
        )


def _truth(level: int | None) -> str:
    if level is None:
        return "not known"
    return f"novel, level {level}" if level else "not novel"
