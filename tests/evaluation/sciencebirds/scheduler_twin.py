"""The rules of the scheduler, written out one by one in plain Python."""

from evaluation.sciencebirds.codes import PLAYING
from evaluation.sciencebirds.scheduler import LIKELIHOOD, LOAD, NEXT, READY, RESTART, SHOT

MENU = 1


class SetRun:
    """A set that is being played."""

    def __init__(self, level_set):
        self.set = level_set
        self.limits = level_set.limits
        self.used = [0] * len(level_set.levels)
        self.current = None
        self.ms = self.interactions = 0
        self.exhausted = False

    def left(self, index):
        return self.limits.attempts <= 0 or self.used[index] < self.limits.attempts

    def may_play(self, index):
        if not 0 <= index < len(self.used) or not self.left(index):
            return False
        ordered = not self.limits.selection and self.limits.attempts > 0
        return not (ordered and self.current is not None and index < self.current)

    def following(self):
        """The level after the current one, around the end; None if there is none."""
        count = len(self.used)
        first = 0 if self.current is None else self.current + 1
        for step in range(count):
            if self.may_play((first + step) % count):
                return (first + step) % count
        return None

    def next(self):
        if self.current is not None and self.limits.attempts > 0 and self.left(self.current):
            return self.current
        return self.following()

    def any_left(self):
        return any(self.may_play(index) for index in range(len(self.used)))

    def over(self, status):
        limits = self.limits
        return (
            (limits.time > 0 and self.ms >= 1000 * limits.time)
            or (limits.interactions > 0 and self.interactions >= limits.interactions)
            or self.exhausted
            or (status != PLAYING and not self.any_left())
        )


class Twin:
    """An evaluation, as the document says."""

    def __init__(self, evaluation, *, per_episode):
        self.measurement = evaluation.measurement
        self.per_episode = per_episode
        self.ahead = [
            trial
            for trial in evaluation.trials
            if trial.sets
            for _ in range(max(trial.executions, 0))
        ]
        self.asked = False
        self.status = MENU
        self.pending = 13
        self.trial = None
        self.run = None
        self._next_execution()

    def _next_execution(self):
        self.status = MENU
        if not self.ahead:
            self.pending = 13
            return
        self.trial = self.ahead.pop(0)
        self.pending = 11
        self.testing = self.trial.training is None
        self.training_over = self.testing
        self.tests_started = 0
        first = self.trial.tests[0] if self.testing else self.trial.training
        self.run = SetRun(first)
        self.kept = None
        self.since_ms = self.since = 0

    def _end_execution(self):
        """Go on to the next execution, but for a question that is still open."""
        if not self.asked:
            self._next_execution()

    def reported(self):
        if self.asked:
            return 12
        if self.pending == 0 or (self.pending in (8, 9, 10) and self.status == PLAYING):
            return self.status
        return self.pending

    def check(self):
        """Announce what is due."""
        if self.pending:
            return
        over = self.run.over(self.status)
        if self.testing:
            if not over:
                return
            if self.trial.training is None and self.tests_started < len(self.trial.tests):
                self.pending = 8
            elif self.training_over:
                self._end_execution()
            else:
                self.pending = 10
            return
        time, interactions = self.trial.checkpoint_time, self.trial.checkpoint_interactions
        checkpoint = (time > 0 and self.since_ms >= 1000 * time) or (
            interactions > 0 and self.since >= interactions
        )
        self.training_over = self.training_over or over
        if (over or checkpoint) and self.trial.tests:
            self.pending = 8
        elif over:
            self._end_execution()

    def event(self, kind, value, ms):
        """What is answered: value, state, whether a shot is accepted, header."""
        if self.pending == 0 or self.status == PLAYING:
            self.run.ms += ms
            if not self.testing:
                self.since_ms += ms
        self.check()
        answer, header = 1, [0] * 7
        if kind == SHOT:
            answer = self.shot(value)
        elif kind in (LOAD, NEXT, RESTART):
            answer = self.load(kind, value)
        elif kind == LIKELIHOOD:
            self.asked = False
        elif kind == READY:
            answer, header = self.ready()
        self.check()
        playable = self.status == PLAYING and not self.asked
        return answer, self.reported(), playable, header

    def interact(self):
        self.run.interactions += 1
        if not self.testing:
            self.since += 1
        measured = self.measurement.testing if self.testing else self.measurement.training
        step = self.measurement.step
        if step > 0 and self.run.interactions % step == 0 and measured and not self.trial.notify:
            self.asked = True

    def shot(self, status):
        if self.status != PLAYING or self.asked:
            return 0
        if not self.per_episode or status != PLAYING:
            self.interact()
        self.status = status
        return 1

    def load(self, kind, value):
        if self.asked or self.pending:
            return 0
        run, limited = self.run, self.run.limits.attempts > 0
        if kind == NEXT:
            index = run.next()
            run.exhausted = run.exhausted or index is None
        elif kind == RESTART:
            index = run.current if run.current is not None and run.left(run.current) else None
        else:
            run.exhausted = run.exhausted or (limited and not run.any_left())
            index = value - 1
            in_order = index in (run.current, run.following())
            if not run.may_play(index) or not (run.limits.selection or in_order):
                index = None
        if index is None:
            return 0
        if self.per_episode and self.status == PLAYING:
            self.interact()
            self.status = MENU
            self.check()
            if self.asked or self.pending:
                return 0
        run.used[index] += 1
        run.current = index
        self.status = PLAYING
        return index + 1 if kind == NEXT else 1

    def ready(self):
        code = self.reported()
        if code not in (8, 9, 10, 11):
            return 0, [0] * 7
        if code == 11:
            self.pending = 8 if self.testing else 9
            return 1, self.header(self.run.set)
        self.pending, self.status = 0, MENU
        if code == 9:
            self.run = SetRun(self.trial.training)
            self.since_ms = self.since = 0
        elif code == 8:
            if not self.testing:
                self.training_over = self.training_over or self.run.over(self.status)
                self.kept = self.run
            last = len(self.trial.tests) - 1
            self.run = SetRun(self.trial.tests[min(self.tests_started, last)])
            self.tests_started += 1
            self.testing = True
        else:
            self.run, self.testing = self.kept, False
            self.since_ms = self.since = 0
        return 1, self.header(self.run.set)

    def header(self, level_set):
        limits = level_set.limits
        numbers = (limits.time, limits.interactions, len(level_set.levels), limits.attempts)
        flags = (self.testing, not limits.selection, self.trial.notify)
        return [max(number, 0) for number in numbers] + [int(flag) for flag in flags]
