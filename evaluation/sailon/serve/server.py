"""Server of experiments: each agent that registers plays one in its own thread.

An agent's messages reach its conversation by the queue that it was given. Answers go back by the
one thread that holds the connection.
"""

import queue
import re
import secrets
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from evaluation.clock import Clock, SystemClock
from evaluation.json_types import JsonMapping
from evaluation.sailon import interactive
from evaluation.sailon.experiment import Experiment
from evaluation.sailon.pictures import Pictures
from evaluation.sailon.results import Results
from evaluation.sailon.serve import protocol
from evaluation.sailon.serve.protocol import BadMessage, Delivery, Message
from evaluation.sailon.serve.remote import MARGIN, POLL, Conversation, RemoteAgent
from evaluation.sailon.serve.transport import Lost, Transport

MOST_AGENTS: Final = 64
"""Largest number of experiments of a server."""
LONGEST_NAME: Final = 60
"""Characters of an agent's name in that of its folder."""

Note = Callable[[str], None]


@dataclass
class Seat:
    """One agent with its experiment.

    Attributes:
      number: of the agent, from 0, in the order of registration.
      name: of the agent.
      queue: queue that it sends to.
      out: directory of its results; None for none.
      talk: the conversation.
      thread: plays the experiment.
      results: the results so far.
      error: exception that ended the thread, outside of the protocol.
    """

    number: int
    name: str
    queue: str
    out: Path | None
    talk: Conversation
    thread: threading.Thread = field(init=False)
    results: Results | None = None
    error: BaseException | None = None


class ExperimentServer:
    """Plays an experiment with every agent that asks for one.

    Args:
      experiment: to play; every agent gets the same one.
      transport: the broker.
      agents: number of agents; later ones are refused.
      out: directory in which every agent's results have a folder; None for none.
      clock: measures the agents' silence.
      wall: time of day, s, for time stamps.
      pictures: for the field `image` of feature vectors; None for null.
      note: called with a line of text on what happens.

    Attributes:
      seats: the agents that have registered.
    """

    def __init__(
        self,
        experiment: Experiment,
        transport: Transport,
        *,
        agents: int = 1,
        out: Path | None = None,
        clock: Clock | None = None,
        wall: Callable[[], float] = time.time,
        pictures: Pictures | None = None,
        note: Note = lambda text: None,
    ) -> None:
        self._experiment, self._transport, self._agents = experiment, transport, agents
        self._out, self._clock, self._wall, self._note = out, clock or SystemClock(), wall, note
        self._pictures = pictures
        self._outbox: queue.SimpleQueue[tuple[Delivery, JsonMapping]] = queue.SimpleQueue()
        self._registered: dict[str, Message] = {}
        self.seats: list[Seat] = []

    def serve(self) -> None:
        """Serve until as many agents as expected have played.

        Raises:
          Lost: the broker is gone for good; finished trials are on disk.
          BaseException: an error of this package that ended an experiment's thread.
        """
        self._transport.listen(protocol.REQUESTS_QUEUE, shared=True)
        try:
            while len(self.seats) < self._agents or any(s.thread.is_alive() for s in self.seats):
                for delivery in self._transport.receive(POLL):
                    self._dispatch(delivery)
                self._flush()
            self._flush()
        except BaseException as error:
            lost = isinstance(error, Lost)
            self._end_all(str(error) if lost else "the server was stopped")
            raise
        for seat in self.seats:
            if seat.error is not None:
                raise seat.error

    def _end_all(self, reason: str) -> None:
        """End all experiments; each writes the results so far."""
        for seat in self.seats:
            seat.talk.end(reason)
        for seat in self.seats:
            seat.thread.join()

    def _flush(self) -> None:
        """Send what the experiments have answered."""
        while not self._outbox.empty():
            delivery, message = self._outbox.get()
            if delivery.reply_to:
                body = protocol.encode(message)
                self._transport.send(delivery.reply_to, body, delivery.correlation_id)

    def _send(self, delivery: Delivery, message: JsonMapping) -> None:
        self._outbox.put((delivery, message))
        self._transport.wake()

    # Requests -------------------------------------------------------------------------------

    def _dispatch(self, delivery: Delivery) -> None:
        for seat in self.seats:
            if delivery.queue == seat.queue:
                if seat.thread.is_alive():
                    seat.talk.put(delivery)
                else:
                    self._outbox.put((delivery, seat.talk.after_the_end(delivery)))
                return
        earlier_answer = self._registered.get(delivery.correlation_id)
        if earlier_answer is not None:
            self._outbox.put((delivery, earlier_answer))
            return
        try:
            answer = self._register(protocol.decode(delivery.body))
        except BadMessage as error:
            self._note(f"refused: {error}")
            answer = protocol.refusal(str(error))
        else:
            if delivery.correlation_id:
                self._registered[delivery.correlation_id] = answer
        self._outbox.put((delivery, answer))

    def _register(self, request: Message) -> Message:
        """Give an agent a seat, and start its experiment."""
        if request["obj_type"] == protocol.REQUEST_TRIALS:
            raise BadMessage("workers that share an experiment are not served; ask for one")
        if request["obj_type"] != protocol.REQUEST_EXPERIMENT:
            raise BadMessage(f"{request['obj_type']} instead of {protocol.REQUEST_EXPERIMENT}")
        if len(self.seats) >= self._agents:
            raise BadMessage(f"all {self._agents} agents have registered; start another server")
        name = protocol.name_of(protocol.model_of(request))
        number, secret = len(self.seats), secrets.token_hex(16)
        limit = self._experiment.settings.normal_timeout_seconds
        silence = limit - MARGIN if limit > 2 * MARGIN else limit
        talk = Conversation(secret, self._send, self._clock, silence)
        folder = f"{number:02}-{re.sub(r'[^0-9A-Za-z_.-]+', '_', name)[:LONGEST_NAME]}"
        out = None if self._out is None else self._out / folder
        seat = Seat(number, name, protocol.SERVER_QUEUE + secrets.token_hex(16), out, talk)
        options = self._options(seat, request)
        agent = self._agent(talk, secret, options)
        seat.thread = threading.Thread(
            target=self._play, args=(seat, agent, options), name=folder, daemon=True
        )
        self._transport.listen(seat.queue, shared=False)
        self.seats.append(seat)
        seat.thread.start()
        self._note(f"agent {number}, {name}: registered")
        return {
            "obj_type": "experiment_response",
            "server_rpc_queue": seat.queue,
            "experiment_secret": secret,
            "model_experiment_id": number,
            "experiment_timeout": limit,
        }

    def _options(self, seat: Seat, request: Message) -> interactive.PlayOptions:
        def keep(results: Results) -> None:
            seat.results = results
            if seat.out is not None:
                results.write(seat.out / "results.parquet")

        return interactive.PlayOptions(
            clock=self._clock,
            wall=self._wall,
            pictures=self._pictures,
            testing=request.get("no_testing") is not True,
            most_trials=1 if request.get("just_one_trial") is True else None,
            trial_over=keep,
        )

    def _agent(
        self, talk: Conversation, secret: str, options: interactive.PlayOptions
    ) -> RemoteAgent:
        settings, trials = self._experiment.settings, len(self._experiment.trials)
        longest = settings.normal_timeout_seconds * settings.training_timeout_multiplier
        most = trials if options.most_trials is None else min(trials, options.most_trials)
        return RemoteAgent(talk, secret, most, longest, self._wall)

    def _play(self, seat: Seat, agent: RemoteAgent, options: interactive.PlayOptions) -> None:
        """Play one experiment; in its own thread."""
        try:
            results = interactive.play(self._experiment, agent, options, seat.name)
            problems = [*results.metadata["problems"], *seat.talk.problems]
            metadata = {
                **results.metadata,
                "engine": "amqp",
                "problems": list(dict.fromkeys(problems)),
            }
            seat.results = replace(results, metadata=metadata)
            if seat.out is not None:
                self._experiment.write(seat.out / "experiment.json")
                seat.results.write(seat.out / "results.csv")
                seat.results.write(seat.out / "results.parquet")
            reason = seat.talk.gone or "the experiment has ended"
            self._note(f"agent {seat.number}, {seat.name}: {reason}")
        except BaseException as error:  # the thread of the server raises it again
            seat.error = error
        finally:
            self._transport.wake()
