"""Small evaluations, a game of one shot, and a run of both with a scripted clock."""

import contextlib
import io
import threading
from dataclasses import replace

from evaluation.clock import ScriptedClock
from evaluation.sciencebirds import codec, harness, server
from evaluation.sciencebirds.codes import LOST, PLAYING, WON
from evaluation.sciencebirds.document import (
    ConfiguredTrial,
    Evaluation,
    LevelSet,
    Measurement,
    SetLimits,
)
from evaluation.sciencebirds.game import Counts
from evaluation.sciencebirds.levels import LevelPath
from evaluation.sciencebirds.scheduler import Quirks

ANNOUNCEMENTS = (8, 9, 10, 11)


def level_set(
    count, *, time=0, interactions=0, attempts=1, selection=False, novelty=0, first=0
) -> LevelSet:
    numbers = range(first, first + count)
    chosen = tuple(LevelPath.of(novelty, 1, number) for number in numbers)
    return LevelSet(SetLimits(time, interactions, attempts, selection), chosen)


def trial(
    training, tests=(), *, executions=1, time=0, interactions=0, notify=False
) -> ConfiguredTrial:
    """A trial; a number stands for a set of so many levels with one attempt each."""
    if isinstance(training, int):
        training = level_set(training)
    tests = tuple(level_set(each) if isinstance(each, int) else each for each in tests)
    return ConfiguredTrial(0, executions, time, interactions, notify, training, tests)


def evaluation(*trials, step=0, in_training=False, in_tests=False) -> Evaluation:
    numbered = tuple(replace(each, number=number) for number, each in enumerate(trials))
    return Evaluation(Measurement(step, in_training, in_tests), numbered)


# The four evaluations whose announcements are known, of levels that one shot ends.
TRACE_A = evaluation(trial(3), trial(2))
TRACE_B = evaluation(trial(level_set(5, interactions=5), [2, 2, 2], interactions=2))
TRACE_C = evaluation(trial(3, executions=2))
TRACE_D = evaluation(trial(4), step=2, in_training=True)
TRACES = {
    "A": (TRACE_A, "11 9 L1 L2 L3 11 9 L1 L2 13"),
    "B": (TRACE_B, "11 9 L1 L2 8 T1 T2 10 L3 L4 8 T1 T2 10 L5 8 T1 T2 13"),
    "C": (TRACE_C, "11 9 L1 L2 L3 11 9 L1 L2 L3 13"),
    "D": (TRACE_D, "11 9 L1 L2 12 L3 L4 12 13"),
    "D, not in training": (
        replace(TRACE_D, measurement=Measurement(2, False, True)),
        "11 9 L1 L2 L3 L4 13",
    ),
    "D, told of novelty": (
        evaluation(trial(4, notify=True), step=2, in_training=True),
        "11 9 L1 L2 L3 L4 13",
    ),
}


class ShotGame:
    """A level ends with its `shots`-th shot; it is won if the last action is not 0."""

    def __init__(self, shots=1) -> None:
        self.shots, self.fired, self.loaded, self.last = shots, 0, [], PLAYING

    def load(self, level) -> None:
        self.loaded.append(level)
        self.fired, self.last = 0, PLAYING

    def shoot(self, action) -> int:
        assert self.last == PLAYING, "played on after the end"
        self.fired += 1
        if self.fired >= self.shots:
            self.last = WON if action else LOST
        return self.last

    def record(self, action, frequency):
        return self.shoot(action), [self.feature_vector()]

    @property
    def score(self) -> int:
        return 10 * self.fired

    @property
    def counts(self) -> Counts:
        return Counts(self.shots - self.fired, int(self.last != WON), self.shots, 1)

    def feature_vector(self):
        return {"shots": self.fired}

    def picture(self) -> codec.Picture:
        return codec.Picture(1, 2, b"abcdef")

    def first_picture(self) -> codec.Picture:
        return codec.Picture(1, 1, b"xyz")

    def hint(self):
        return [{"level": self.loaded[-1].novelty_level}]


class Run:
    """A harness that is asked without a socket."""

    def __init__(self, what, *, shots=1, results=None, quirks=(), observer=None, **options) -> None:
        self.clock, self.game = ScriptedClock(), ShotGame(shots)
        chosen = Quirks(**dict.fromkeys(quirks, True))
        self.harness = harness.Harness(
            what,
            self.game,
            clock=self.clock,
            results=results,
            options=harness.HarnessOptions(quirks=chosen, **options),
            observer=observer,
        )

    def ask(self, name, **values):
        """The fields of a reply, the only one by itself; None for no answer."""
        message = codec.BY_NAME[name]
        reply = self.harness.answer(codec.Request(message, values))
        if reply is None:
            return None
        if message.reply == (("accepted", "answers"),):
            return list(reply)
        fields = message.read_reply(io.BytesIO(reply).read)
        return next(iter(fields.values())) if len(fields) == 1 else fields

    @property
    def state(self) -> int:
        return self.ask("state")

    def shoot(self, x=1, y=0) -> int:
        return self.ask("shoot", x=x, y=y, t1=0, t2=0)

    def likelihood(self, **values) -> int:
        usual = {"novel": 0.9, "non_novel": 0.1, "ids": (), "level": 0, "description": ""}
        return self.ask("report_likelihood", **usual | values)

    def begin(self) -> list[int]:
        """Answer announcements until a set has begun; return them."""
        met = []
        while (state := self.state) in ANNOUNCEMENTS:
            met.append(state)
            self.ask("ready")
        return met

    def trace(self, *, most=400, seconds=0.0, x=1) -> str:
        """Announcements and levels of an agent that does its duty and takes what comes next."""
        met: list[str] = []
        testing, refused = False, 0
        for _ in range(most):
            state = self.state
            if state in (*ANNOUNCEMENTS, 12, 13):
                met.append(str(state))
            if state == 13:
                break
            if state in ANNOUNCEMENTS:
                testing = bool(self.ask("ready")["mode"])
            elif state == 12:
                self.likelihood()
            elif state == PLAYING:
                self.clock.advance(seconds)
                self.shoot(x)
            else:
                number = self.ask("load_next")
                if number is None:
                    return " ".join([*met, "silence"])
                refused = 0 if number else refused + 1
                assert refused < 3, met
                if number:
                    met.append(f"{'T' if testing else 'L'}{number}")
        return " ".join(met)


@contextlib.contextmanager
def serving(what, *, shots=1, results=None, idle_limit=300.0, game=None, options=None, **more):
    """A server in a thread; yields it with its clock and the notes that it takes."""
    clock, notes = ScriptedClock(), []
    run = harness.Harness(
        what, game or ShotGame(shots), clock=clock, results=results, options=options
    )
    instance = server.EvaluationServer(
        run,
        server.listen(port=0),
        clock=clock,
        idle_limit=idle_limit,
        note=notes.append,
        **more,
    )
    failures: list[BaseException] = []

    def serve() -> None:
        try:
            instance.serve()
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield instance, clock, notes
    finally:
        instance.stop()
        thread.join(20)
    assert not thread.is_alive()
    assert not failures, failures
