"""Write docs/sciencebirds.md: the protocol as it is spoken here, from the code that speaks it.

python -m tools.sciencebirds_page --out docs/sciencebirds.md
"""

import argparse
import inspect
from collections.abc import Iterable, Iterator

from benchmarks.pages import add_out, put
from evaluation.sciencebirds import codec, document, game, legacy, levels, markup, results, server
from evaluation.sciencebirds.codes import DUTIES
from evaluation.sciencebirds.harness import MAX_VECTORS

INTRODUCTION = """
The trial harness of the Science Birds competition, with CartPole3D for the game: trials of
training and test sets of levels, with checkpoints, attempts, limits and questions for novelty,
behind the competition's TCP protocol. An agent that speaks the protocol can be evaluated here;
what is played are the levels of the novelty catalogue ([levels.md](levels.md)).

```bash
jaxsim sciencebirds generate examples/sciencebirds/sequences.xml --seed 1 -o config.xml
jaxsim sciencebirds serve --config config.xml --results runs/sciencebirds
jaxsim sciencebirds demo --backups runs/demo_agent
```

The second command waits on port 2004 of this machine only, until an agent has played all trials;
the third, in another terminal, is such an agent. `python -m evaluation.sciencebirds.demo_agent`
is the same without the rest of the package:
[demo_agent.py](../evaluation/sciencebirds/demo_agent.py) is the pattern for agents of one's own,
[agent_client.py](../evaluation/sciencebirds/agent_client.py) the library that it uses. Neither
needs JAX. Agents that import `client.agent_client` find it there with `jaxsim shims` on their path:
[naive_agent_groundtruth.py](../examples/sciencebirds/naive_agent_groundtruth.py) is one.
The documents are read with defusedxml, which the extra `sciencebirds` brings.
"""

DOCUMENTS = """
`configMeta.xml` says what is wanted, `config.xml` holds the trials level by level. `generate`
makes the second from the first; `serve` without `--config` does so by itself and whenever the
first has changed. The same document, seed and options give the same file, byte by byte. Three
samples are in [examples/sciencebirds](../examples/sciencebirds).
"""

AFTER_DOCUMENTS = """
A limit of 0 or less is none. In the meta, `notify_novelty` is true, false or both, which makes
two trials with the same levels; `amount` is a number or a range `lo-hi`, of which `hi` is not
drawn; `ordered` is whether test sets come in the order of the document or shuffled. The records of
all executions are held in memory: a `number_of_executions` that does not fit is refused before
anything is served, with the number that does.

**How many test sets there are.** A checkpoint takes one test set, and the training ends with a
test, so with limits T of time and I of interactions, and checkpoints every t and i,

```
all      = ceil(T / t) + ceil(I / i)          a pair without one of its limits counts nothing
of kind k = ceil(all * set_appearance_percentage / 100)
```

Where neither pair has both limits, `all` is one: the final test. (T, t, I, i) = (600, 250, 0, 0)
is three: at 250, at 500 and at the end. With both pairs the sum is an upper bound, since a
checkpoint restarts both counts. Where a trial has more checkpoints than test sets, the last set
is played again.

**Which levels.** Those of training are drawn from the pool of their novelty level and type with
replacement; those of tests without, within a trial. `novelty_absence_portion` and
`no_diff_portion` are shares of the levels in which the novelty is absent, or there and not to be
seen; if they exceed one they are scaled to it.

**Files that are refused:** document types and entities, of any kind; more than {size} MiB;
elements nested more than {depth} deep; more than {trials:,} trials or {levels:,} levels; paths
of levels that are absolute, that hold `.` or `..`, or that name no known physics. Every error
names file, line and column. UTF-8 and UTF-16 are read, and UTF-8 that says it is UTF-16, as the
original's files do.
"""

STATES = """
An agent asks for the state and does what it says.

A trial begins with 11, then 9, or 8 if it has no training. Announcements 8, 9, 10 and 11 are
answered by 68, whose reply tells limits and kind of the set; a question for novelty, 12, by 66.
Until then nothing can be loaded or played. Trials that tell of novelty never ask. 12, 11 and 13
come at once, the others when the level is over. Time stands still from an announcement to its
68, and runs on while 12 waits; the time and the interactions of tests do not count as training.
After a test the training goes on with the level, the attempts and the counts that it had.

Five levels, a limit of five interactions, a checkpoint every two, one test of two levels each
time, and an agent that needs one interaction a level:

```
11 9 L1 L2 8 T1 T2 10 L3 L4 8 T1 T2 10 L5 8 T1 T2 13
```
"""

LEGALITY = """
| request | refused when |
| --- | --- |
| 31 to 43, 34, 35 | no level is running, or 12 waits |
| 51, 52, 53 | 8 to 13 wait or are told, or the level may not be loaded now |
| 68 | nothing is announced; the reply is all zeros |
| 66, 67 | more than {reported} MiB have been reported |

A refused request changes nothing. 53 serves the current level as long as it has attempts, then
the one after it, around the end; when no level is left it answers 0 and the set is over. 51
takes any level of an unordered set; in a sequence the current one and the one after it. Without
a limit of attempts 53 goes round for ever and only time and interactions end the set.
"""

BYTES = """
Numbers are big-endian. The first byte of a request is its code; there are no frames and no other
separators. One request is in flight at a time; those that come earlier wait. Layouts of `u8`,
`u32`, `i32` and `f32` are unsigned bytes, unsigned and signed numbers of four bytes, and IEEE
754 floats.
"""

LIMITS = """
Longest text of 66 and 67: {text} MiB. Most ids of 66: {ids:,}. Shots of 33 and 43: {shots}.
Feature vectors in one reply: {vectors}. A request that is longer, or of an unknown code, ends
the connection, for nothing behind it can be understood. So does a client that sends no whole
request, or does not take the whole of its reply, for {idle:g} s (`--idle-limit`). There is one
client at a time: another is sent a byte {busy} and disconnected. The evaluation outlives
connections; the next client goes on where the last one was.
"""

EARLY = """
`--dialect early` speaks the requests of the original up to version 0.3.6: 66 ends behind the two
likelihoods, and 31 and 41 have six numbers, of which the third and fourth are the vector.
"""

RESULTS = """
Below the directory of `--results`, one named after agent, port and time holds for each trial

- `..._EvaluationData.csv`, a row a level that is over (Pass, Fail) or was left (Playing): {level}.
  A bird is a step, and the one pig the time to be survived: `birdsAtStart` is 200, `birdsRemaining`
  what was not played, `pigsRemaining` 0 for a level that was won. The score is the steps survived.
- `..._Likelihood.csv`, a row a report of novelty: {likelihood}.
  Commas and line ends of descriptions become spaces; true ids of objects stay empty.
- `..._Descriptions.jsonl`, what was sent by 67, word for word.

When the server ends it also writes `records.parquet`, the table that all protocols of this
package share: a row a level, training and test told apart, of which `evaluation.records` and the
metrics know everything. Its novelty predictions are the last report that came while a level was
running or before the next one was: the probability is novel / (novel + non_novel), the threshold
0.5.

A row is on disk before the request that caused it is answered. `EvaluationIndex` is the number
of the execution of the trial, `novelty` is novel where there is a novelty that can be seen.
"""

LEGACY = """
What the original does otherwise is right here and can be had: `--legacy later` is what its later
snapshot does, `--legacy older` that of the older one, `--legacy NAME,NAME` anything else. The
reading of the document is that of its text; the original's behaviour is that of its published
description.
"""

OTHERWISE = """
Deliberately otherwise, without a switch: booleans may be upper or lower case in both files; test
limits may be attributes or `limits`; the random numbers have a seed; shares of novelty above one
are scaled together; levels of a novelty that the training has are there for tests, too; 69 knows
novelty levels above 9; `n_levels` can be told (`--tell-levels`).
"""

LANES = """
The scheduler is a pure function, [scheduler.py](../evaluation/sciencebirds/scheduler.py); the
server is one lane of it. Any number of evaluations with plans of one shape run side by side,
compiled once:

```python
import numpy as np

from evaluation.sciencebirds import generate, load_meta, scheduler

meta = load_meta("examples/sciencebirds/sequences.xml")
trials = [generate.generate(meta, seed) for seed in range(256)]
plans = scheduler.stack([scheduler.plan_of(each) for each in trials])
states = scheduler.started_lanes(plans)
nothing = np.zeros(256, np.int32)
ready = scheduler.Event(nothing + scheduler.READY, nothing, nothing)
states, replies = scheduler.lanes(plans, states, ready)
assert (replies.reported == 9).all()
```
"""


def table(headings: Iterable[str], rows: Iterable[Iterable[str]]) -> Iterator[str]:
    """Lines of a table."""
    titles = list(headings)
    yield "| " + " | ".join(titles) + " |"
    yield "| --- " * len(titles) + "|"
    for row in rows:
        yield "| " + " | ".join(row) + " |"


def layout(fields: codec.Fields) -> str:
    """Fields of a message with their kinds."""
    return "; ".join(f"{codec.KINDS[kind].layout} **{name}**" for name, kind in fields) or "–"


def requests() -> Iterator[tuple[str, ...]]:
    """Rows of the table of requests."""
    for message in sorted([*codec.REQUESTS.values(), *codec.BEHIND.values()], key=lambda m: m.code):
        yield (
            str(message.code),
            f"`{message.name}`",
            layout(message.fields),
            layout(message.reply),
            message.note,
        )


def part_of(module: object, first: str) -> list[str]:
    """Lines of a module's docstring from the one that begins so, up to the next gap."""
    lines = (inspect.getdoc(module) or "").splitlines()
    start = next(index for index, line in enumerate(lines) if line.startswith(first))
    end = next((i for i in range(start, len(lines)) if not lines[i].strip()), len(lines))
    return lines[start:end]


def grammar() -> Iterator[str]:
    """The two grammars, as the module of the documents has them."""
    lines = (inspect.getdoc(document) or "").splitlines()
    yield "```"
    yield from (line[4:] for line in lines[2:] if line.startswith("    ") or not line)
    yield "```"


def page() -> Iterator[str]:
    """Lines of the page."""
    yield "# Science Birds protocol"
    yield ""
    yield "Generated by `python -m tools.sciencebirds_page`; do not edit."
    yield INTRODUCTION.rstrip()
    for title, lines in SECTIONS:
        yield ""
        yield f"## {title}"
        yield ""
        yield from lines()


def _documents() -> Iterator[str]:
    yield DOCUMENTS.strip()
    yield ""
    yield from grammar()
    yield ""
    yield from part_of(document, "What is a number")
    yield AFTER_DOCUMENTS.rstrip().format(
        size=markup.MAX_BYTES // 2**20,
        depth=markup.MAX_DEPTH,
        trials=document.MAX_TRIALS,
        levels=document.MAX_LEVELS,
    )


def _levels() -> Iterator[str]:
    yield from part_of(levels, "A level is named")
    yield ""
    yield from part_of(levels, "| part of the path")
    yield ""
    yield from part_of(levels, "Names without")


def _playing() -> Iterator[str]:
    yield from part_of(game, "A shot is an action")
    yield ""
    yield from part_of(game, "| vector")
    yield ""
    yield from part_of(game, "A polar shot")
    yield ""
    yield "A level is won when all steps are survived, and lost when the pole has fallen. Feature"
    yield "vectors are those of the original CartPole3D; pictures show the side on the left and the"
    yield "top on the right. An interaction is a shot (`--interaction step`), or a level that was"
    yield "played or left (`--interaction episode`)."


def _states() -> Iterator[str]:
    yield STATES.strip()
    yield ""
    rows = ((str(int(state)), state.name, duty) for state, duty in DUTIES.items())
    yield from table(("code", "state", "what the agent does"), rows)


def _legality() -> Iterator[str]:
    yield LEGALITY.strip().format(reported=results.MAX_REPORTED // 2**20)


def _bytes() -> Iterator[str]:
    yield BYTES.strip()
    yield ""
    yield from table(("code", "name", "request, behind the code", "reply", "what"), requests())
    yield LIMITS.rstrip().format(
        text=codec.MAX_TEXT // 2**20,
        ids=codec.MAX_IDS,
        shots=codec.MAX_SHOTS,
        vectors=MAX_VECTORS,
        idle=server.IDLE_LIMIT,
        busy=f"{codec.NOTHING_LEFT:#04x}",
    )
    yield EARLY.rstrip()


def _results() -> Iterator[str]:
    columns = (results.LEVEL_COLUMNS, results.LIKELIHOOD_COLUMNS)
    level, likelihood = (", ".join(f"`{name}`" for name in each) for each in columns)
    yield RESULTS.strip().format(level=level, likelihood=likelihood)


def _legacy() -> Iterator[str]:
    yield LEGACY.strip()
    yield ""
    differences = legacy.SCHEDULING | legacy.GENERATION
    rows = (
        (f"`{name}`", each.here, each.there, "older" if name in legacy.OLDER_ONLY else "both")
        for name, each in differences.items()
    )
    yield from table(("name", "here", "in the original", "snapshots"), rows)
    yield OTHERWISE.rstrip()


def _lanes() -> Iterator[str]:
    yield LANES.strip()


SECTIONS = (
    ("The documents", _documents),
    ("Levels", _levels),
    ("States", _states),
    ("Playing", _playing),
    ("What is refused", _legality),
    ("Requests and replies", _bytes),
    ("Results", _results),
    ("What the original does otherwise", _legacy),
    ("Side by side", _lanes),
)


def main() -> None:
    """Write the page."""
    parser = argparse.ArgumentParser(description="Write the page of the Science Birds protocol.")
    add_out(parser)
    arguments = parser.parse_args()
    put("\n".join(page()) + "\n", arguments.out)


if __name__ == "__main__":
    main()
