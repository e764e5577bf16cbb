"""The class that agents for the WSU novelty generator derive from.

    from evaluation.sailon import TA2Logic

    class TA2Agent(TA2Logic):
        def testing_instance(self, feature_vector, novelty_indicator=None):
            return {"action": "nothing"}

Every method may be overridden; it is called with these keywords. The messages are those of the
generator's version 0.8. Under `jaxsim sailon run`, agents can also import the class as
`objects.TA2_logic.TA2Logic`, so those written for the generator run unchanged.

Source: the agent interface of the WSU novelty generator; written anew.
"""

import configparser
import logging
import optparse
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from evaluation.json_types import JsonObject, JsonValue
from evaluation.sailon.options import AgentOptions

Feedback = JsonObject | None
Verdict = tuple[float, float, int, JsonObject]

_host: ContextVar[Callable[[Any], None]] = ContextVar("host")


_TEXTS = {"config": "ini file", "logfile": "write the log there"}
_FLAGS = {
    "debug": "log more",
    "fulldebug": "log everything",
    "printout": "log to standard output",
    "no-testing": "train only",
    "just-one-trial": "play the first trial",
    "ignore-secret": "accepted and ignored",
}
"""Options of every agent."""


@contextmanager
def hosted(play: Callable[[Any], None]) -> Iterator[None]:
    """Let `TA2Logic.run` call `play` with the agent."""
    token = _host.set(play)
    try:
        yield
    finally:
        _host.reset(token)


class TA2Logic:
    """An agent that an experiment is played with.

    Attributes:
      log: logger of the agent.
      config: the ini file named by ``--config``; empty without one.
      arguments: the parsed command line, also what `_get_command_line_options` returns.
      possible_answers: actions, by convention; agents set their own.
      end_training_early: True to end the training after the present episode.
      end_experiment_early: True to end the experiment after the present episode.
    """

    def __init__(self) -> None:
        """Read the command line and, if it names one, an ini file.

        Raises:
          ValueError: the ini file cannot be read.
        """
        self.arguments = self._get_command_line_options()
        self.config = configparser.ConfigParser(interpolation=None)
        if self.arguments.config is not None:
            try:
                with open(self.arguments.config, encoding="utf-8") as file:
                    self.config.read_file(file)
            except (OSError, ValueError, configparser.Error) as error:
                reason = " ".join(str(error).split())
                raise ValueError(f"--config {self.arguments.config}: {reason}") from error
        self.log = self._logger()
        self.possible_answers: list[JsonValue] = []
        self.end_training_early = False
        self.end_experiment_early = False

    def _get_command_line_options(self) -> optparse.Values:
        """Parse the command line: options of every agent, and those that this one adds.

        Raises:
          ValueError: a value that does not fit or, under `jaxsim sailon run`, an unknown option.
        """
        parser: optparse.OptionParser = AgentOptions(strict=_host.get(None) is not None)
        for name, text in _TEXTS.items():
            parser.add_option(f"--{name}", metavar="FILE", help=text)
        for name, text in _FLAGS.items():
            parser.add_option(f"--{name}", action="store_true", default=False, help=text)
        parser = self._add_ta2_command_line_options(parser)
        if not isinstance(parser, AgentOptions):
            raise ValueError(
                "_add_ta2_command_line_options must return the parser that it is given"
            )
        return parser.parsed(sys.argv[1:])

    def _logger(self) -> logging.Logger:
        log = logging.getLogger(f"sailon.{type(self).__name__}")
        verbose = self.arguments.debug or self.arguments.fulldebug
        log.setLevel(logging.DEBUG if verbose else logging.INFO)
        if self.arguments.logfile is not None and not log.handlers:
            log.addHandler(logging.FileHandler(self.arguments.logfile))
        if self.arguments.printout and not log.handlers:
            log.addHandler(logging.StreamHandler(sys.stdout))
        return log

    def _add_ta2_command_line_options(self, parser: optparse.OptionParser) -> optparse.OptionParser:
        """Add options of the agent's own, by `parser.add_option`; return the parser."""
        return parser

    def run(self) -> None:
        """Play the experiment of `jaxsim sailon run`.

        Raises:
          RuntimeError: there is no experiment.
        """
        play = _host.get(None)
        if play is None:
            raise RuntimeError(
                "there is no experiment to play: start the agent by `jaxsim sailon run --agent "
                "FILE EXPERIMENT`, or call evaluation.sailon.play(experiment, agent)"
            )
        play(self)

    def process_amqp_events(self) -> None:
        """Keep a connection alive during a long computation; there is none here."""

    def experiment_start(self) -> None:
        """Called when the experiment starts."""

    def training_start(self) -> None:
        """Called when the training starts."""

    def training_episode_start(self, episode_number: int) -> None:
        """Called when a training episode starts."""

    def training_instance(
        self, feature_vector: JsonObject, feature_label: JsonObject
    ) -> JsonObject:
        """Return the action for a feature vector, as ``{"action": "left"}``."""
        return {"action": "nothing"}

    def training_performance(self, performance: float, feedback: Feedback = None) -> None:
        """Called with the performance so far after every tick but the last of an episode."""

    def training_episode_end(self, performance: float, feedback: Feedback = None) -> Verdict:
        """Return novelty probability, threshold, novelty and characterisation of the episode."""
        return 0.0, 1.0, 0, {}

    def training_end(self) -> None:
        """Called when the training has ended."""

    def train_model(self) -> None:
        """Learn from the training; its time limit is longer than that of other calls."""

    def save_model(self, filename: str) -> None:
        """Save the model."""

    def reset_model(self, filename: str) -> None:
        """Load the saved model; called at the start of every trial."""

    def trial_start(self, trial_number: int, novelty_description: JsonObject) -> None:
        """Called when a trial starts."""

    def testing_start(self) -> None:
        """Called when the episodes of a trial start."""

    def testing_episode_start(self, episode_number: int) -> None:
        """Called when an episode of a trial starts."""

    def testing_instance(
        self, feature_vector: JsonObject, novelty_indicator: bool | None = None
    ) -> JsonObject:
        """Return the action for a feature vector, as ``{"action": "left"}``.

        Args:
          feature_vector: decoded JSON.
          novelty_indicator: whether novelty has come; None for not told.
        """
        return {"action": "nothing"}

    def testing_performance(self, performance: float, feedback: Feedback = None) -> None:
        """Called with the performance so far after every tick but the last of an episode."""

    def testing_episode_end(self, performance: float, feedback: Feedback = None) -> Verdict:
        """Return novelty probability, threshold, novelty and characterisation of the episode."""
        return 0.0, 1.0, 0, {}

    def testing_end(self) -> None:
        """Called when the episodes of a trial have ended."""

    def trial_end(self) -> None:
        """Called when a trial has ended."""

    def experiment_end(self) -> None:
        """Called when the experiment has ended."""
