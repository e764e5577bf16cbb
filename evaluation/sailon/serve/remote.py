"""An agent at the other end of a broker, as an object with the methods of `TA2Logic`.

`interactive.play` calls these methods. Each waits for the request that the agent has to send next
and answers it, so that the agent sees the sequence of the generator's messages.
"""

import queue
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from evaluation.clock import Clock
from evaluation.json_types import JsonMapping, JsonValue
from evaluation.sailon.serve import protocol
from evaluation.sailon.serve.protocol import BadMessage, Delivery, Message

POLL: Final = 0.05
"""Longest wait for a message, s, between two looks at the clock."""
MARGIN: Final = 5.0
"""Seconds subtracted from the limit of a call to get the limit of an agent's silence."""
REMEMBERED: Final = 16
"""Number of answers that are kept, to be sent again if their request comes twice."""
MOST_PROBLEMS: Final = 100
"""Largest number of problems of a conversation that are kept."""

Send = Callable[[Delivery, JsonMapping], None]


class AgentGone(Exception):
    """The agent no longer answers; the message says why."""


class Conversation:
    """Requests of one agent, in the order in which they are due.

    Args:
      secret: every request that has a secret must have this one.
      send: answers a delivery; called from the thread of the conversation.
      clock: measures the agent's silence.
      limit: s of silence after which the agent is gone.
    """

    def __init__(self, secret: str, send: Send, clock: Clock, limit: float) -> None:
        self._secret, self._send, self._clock, self._limit = secret, send, clock, limit
        self._inbox: queue.Queue[Delivery | str] = queue.Queue()
        self._answers: OrderedDict[str, Message] = OrderedDict()
        self._due: Delivery | None = None
        self._gone = ""
        self.problems: list[str] = []

    def put(self, delivery: Delivery) -> None:
        """Hand over a delivery; from any thread."""
        self._inbox.put(delivery)

    def end(self, reason: str) -> None:
        """End the conversation; from any thread."""
        self._inbox.put(reason)

    @property
    def gone(self) -> str:
        """Why the agent no longer answers; "" while it may."""
        return self._gone

    def receive(self, *expected: str, limit: float | None = None) -> Message:
        """Wait for a request of one of these types; it is answered by `reply`.

        Others are refused and noted. A request that was answered already is answered again.

        Raises:
          AgentGone: the agent was silent for too long, or cannot be reached any more.
        """
        if self._gone:
            raise AgentGone(self._gone)
        limit = self._limit if limit is None else limit
        end = self._clock.now() + limit
        while True:
            delivery = self._next()
            if isinstance(delivery, str):
                self._leave(delivery)
            elif delivery is not None and not self._again(delivery):
                message = self._accept(delivery, expected)
                if message is not None:
                    self._due = delivery
                    return message
            # Checked after every delivery: a refused or repeated request does not renew the limit.
            if self._clock.now() >= end:
                self._leave(f"the agent sent no {' or '.join(expected)} for {limit:g} s")

    def _next(self) -> Delivery | str | None:
        """The next delivery, or the reason to end; None if nothing comes within `POLL`."""
        try:
            return self._inbox.get(timeout=POLL)
        except queue.Empty:
            return None

    def reply(self, obj_type: str, **fields: JsonValue) -> None:
        """Answer the request that was received last, if it is not answered yet."""
        if self._due is None:
            return
        message = {"obj_type": obj_type, **fields}
        if self._due.correlation_id:
            self._answers[self._due.correlation_id] = message
            while len(self._answers) > REMEMBERED:
                self._answers.popitem(last=False)
        self._send(self._due, message)
        self._due = None

    def after_the_end(self, delivery: Delivery) -> Message:
        """The answer to a request after the conversation is over."""
        over = protocol.refusal(self._gone or "the experiment has ended")
        return self._answers.get(delivery.correlation_id, over)

    def note(self, problem: str) -> None:
        """Keep a problem, up to `MOST_PROBLEMS`."""
        if len(self.problems) < MOST_PROBLEMS:
            self.problems.append(problem)

    def _leave(self, reason: str) -> None:
        self._gone = reason
        self.note(reason)
        raise AgentGone(reason)

    def _again(self, delivery: Delivery) -> bool:
        """Answer a repeated request as before; return whether it was one."""
        answer = self._answers.get(delivery.correlation_id) if delivery.correlation_id else None
        if answer is not None:
            self.note(f"a request came twice; {answer['obj_type']} was sent again")
            self._send(delivery, answer)
        return answer is not None

    def _accept(self, delivery: Delivery, expected: tuple[str, ...]) -> Message | None:
        """Decode a message; refuse it, and return None, if it is not expected."""
        try:
            message = protocol.decode(delivery.body)
            if message["obj_type"] not in expected:
                raise BadMessage(f"{message['obj_type']} instead of {' or '.join(expected)}")
            if message.get("secret", self._secret) != self._secret:
                raise BadMessage(f"{message['obj_type']} with another secret")
            return message
        except BadMessage as error:
            self.note(f"refused: {error}")
            self._send(delivery, protocol.refusal(str(error)))
            return None


@dataclass
class RemoteAgent:
    """A remote agent with the methods that `interactive.play` calls.

    Attributes:
      talk: the conversation.
      secret: of the experiment.
      trials: number of trials.
      training_limit: s that the agent may take to train and to come back.
      wall: time of day, s.
      end_training_early: whether the agent asked for the end of the training.
      end_experiment_early: whether it asked for the end of the experiment, or is gone.
    """

    talk: Conversation
    secret: str
    trials: int
    training_limit: float
    wall: Callable[[], float]
    end_training_early: bool = False
    end_experiment_early: bool = False

    @property
    def end_reason(self) -> str:
        """Why the experiment ends early if the agent did not ask for it."""
        return self.talk.gone

    def _state(self, obj_type: str, limit: float | None = None, **fields: JsonValue) -> None:
        """Answer the next request for the state."""
        self._receive(protocol.REQUEST_STATE, limit=limit)
        self.talk.reply(obj_type, **fields)

    def _receive(self, *expected: str, limit: float | None = None) -> Message:
        try:
            return self.talk.receive(*expected, limit=limit)
        except AgentGone:
            self.end_training_early = self.end_experiment_early = True
            raise

    # The experiment -----------------------------------------------------------------------------

    def experiment_start(self) -> None:
        """Request the benchmark data of the agent's machine, and start."""
        self._state("benchmark_request", benchmark_script="")
        self._receive(protocol.BENCHMARK_DATA)
        self.talk.reply("benchmark_ack")
        self._state("experiment_start")

    def training_start(self) -> None:
        """Announce the training."""
        self._state("training_start")

    def training_end(self) -> None:
        """Announce the end of the training; the agent learns from it now."""
        self._state("training_end", message="train and save the model, then come back")

    def train_model(self) -> None:
        """Wait until the agent is back."""
        self._state("training_model_end", limit=self.training_limit)

    def trial_start(self, trial_number: int, novelty_description: JsonMapping) -> None:
        """Announce a trial."""
        self._state(
            "trial_start",
            trial_number=trial_number,
            total_trials=self.trials,
            message="reset the model",
            novelty_description=dict(novelty_description),
        )

    def testing_start(self) -> None:
        """Announce the episodes of a trial."""
        self._state("testing_start")

    def testing_end(self) -> None:
        """Announce the end of the episodes."""
        self._state("testing_end")

    def trial_end(self) -> None:
        """Announce the end of a trial."""
        self._state("trial_end")

    def experiment_end(self) -> None:
        """Announce the end of the experiment."""
        self._state("experiment_end")

    # Episodes -----------------------------------------------------------------------------------

    def training_episode_start(self, episode_number: int) -> None:
        """Announce an episode of the training."""
        self._state("training_episode_start", episode_number=episode_number, total_episodes=0)

    def testing_episode_start(self, episode_number: int) -> None:
        """Announce an episode of a trial."""
        self._state("testing_episode_start", episode_number=episode_number, total_episodes=0)

    def training_instance(
        self, feature_vector: JsonMapping, feature_label: JsonMapping
    ) -> JsonValue:
        """Send a feature vector and its label; return the agent's answer."""
        return self._instance("training", feature_vector, feature_label=dict(feature_label))

    def testing_instance(
        self, feature_vector: JsonMapping, novelty_indicator: bool | None = None
    ) -> JsonValue:
        """Send a feature vector; return the agent's answer."""
        return self._instance("testing", feature_vector, novelty_indicator=novelty_indicator)

    def _instance(self, mode: str, feature_vector: JsonMapping, **fields: JsonValue) -> JsonValue:
        self._receive(f"request_{mode}_data")
        now = self.wall()
        self.talk.reply(
            f"{mode}_data",
            secret=self.secret,
            feature_vector=dict(feature_vector),
            utc_remote_epoch_received=now,
            utc_remote_epoch_sent=now,
            **fields,
        )
        # Answered after the action was played.
        message = self._receive(f"{mode}_data_prediction")
        if message.get("end_early") is True:
            self.end_training_early |= mode == "training"
            self.end_experiment_early |= mode == "testing"
        return message.get("label_prediction")

    def training_performance(self, performance: float, feedback: JsonValue = None) -> None:
        """Acknowledge an action."""
        self._performance("training", performance, feedback)

    def testing_performance(self, performance: float, feedback: JsonValue = None) -> None:
        """Acknowledge an action."""
        self._performance("testing", performance, feedback)

    def _performance(self, mode: str, performance: float, feedback: JsonValue) -> None:
        fields = {"secret": self.secret, "performance": performance, "feedback": feedback}
        self.talk.reply(f"{mode}_data_ack", **fields)

    def training_episode_end(self, performance: float, feedback: JsonValue = None) -> JsonValue:
        """Answer the last action of an episode; return what the agent reports of novelty."""
        return self._episode_end("training", performance, feedback)

    def testing_episode_end(self, performance: float, feedback: JsonValue = None) -> JsonValue:
        """Answer the last action of an episode; return what the agent reports of novelty."""
        return self._episode_end("testing", performance, feedback)

    def _episode_end(self, mode: str, performance: float, feedback: JsonValue) -> JsonValue:
        self.talk.reply(f"{mode}_episode_end", performance=performance, feedback=feedback)
        message = self._receive(f"{mode}_episode_novelty")
        self.talk.reply(f"{mode}_episode_novelty_ack")
        names = ("novelty_probability", "novelty_threshold", "novelty", "novelty_characterization")
        return tuple(message.get(name) for name in names)
