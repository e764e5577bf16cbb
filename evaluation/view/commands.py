"""The command `jaxsim view`."""

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING

from evaluation.arguments import Commands, add_command
from evaluation.files import write_whole

if TYPE_CHECKING:
    from jaxsim.render.viewer import Film

REPORTS = ("report.json", "curve.json")
"""Reports of runs and of trainings."""

EXAMPLES = """examples:
  jaxsim view --level 203 --difficulty hard --agent mpc --seed 7 --out episode.html
  jaxsim view --level 203 --agent pd --agent mpc --out two.html --gif two.gif
  jaxsim view --level 203 --agent mpc --mp4 episode.mp4 --pixels 480 --quiet
  jaxsim view runs/x --lifetime 812 --episode 37
  jaxsim view runs/x --episode 37 --agent moved/my_agent.py
  jaxsim view runs/x --ends
  jaxsim view runs/sailon --trial 3 --episode 12
  jaxsim view runs/sailon/transcripts/trial-00003/episode-00012.jsonl

The page needs no other file and no network: a double click opens it. Without --out it goes to
view.html. Episodes of a run are replayed from its records. Agents that learn first replay their
lifetime up to the episode, from its start or from the nearest checkpoint; the page says which.
--ends writes a page of each episode under "Worst and best lifetimes" of the run's report to the
run's folder views, and links them in the report.
"""

MOST_VIDEO_PIXELS = 1024


def add_to(commands: Commands) -> None:
    """Add the command to those of `jaxsim`."""
    view = add_command(commands, "view", "write an episode as an interactive 3D page", EXAMPLES)
    view.add_argument(
        "source",
        type=Path,
        nargs="?",
        metavar="SOURCE",
        help="directory of a run or of trials, or a transcript; none for a level and a seed",
    )
    view.add_argument("--level", type=int, metavar="N", help="level to play (200)")
    view.add_argument("--difficulty", metavar="NAME", help="easy, medium or hard (easy)")
    view.add_argument(
        "--agent",
        action="append",
        default=[],
        metavar="NAME",
        help="agent (pd); repeated, agents are shown with the same start",
    )
    view.add_argument("--seed", type=int, metavar="N", help="root of all randomness (0)")
    view.add_argument("--lifetime", type=int, metavar="K", help="lifetime of a run (its first)")
    view.add_argument("--trial", type=int, metavar="K", help="trial, if it has transcripts")
    view.add_argument(
        "--episode",
        type=int,
        action="append",
        default=[],
        metavar="K",
        help="number of the episode, from 0 (0); repeated, episodes are shown together",
    )
    view.add_argument(
        "--ends", action="store_true", help="of a run: the worst and best lifetimes of its report"
    )
    view.add_argument("--out", type=Path, metavar="FILE", help="page (view.html)")
    view.add_argument("--gif", type=Path, metavar="FILE", help="also write a GIF (extra view)")
    view.add_argument("--mp4", type=Path, metavar="FILE", help="also write an MP4 (extra view)")
    view.add_argument(
        "--pixels", type=int, default=320, metavar="N", help="height of these videos (320)"
    )
    view.add_argument("--quiet", action="store_true", help="print nothing")
    view.set_defaults(handler=_view)


def _view(arguments: argparse.Namespace) -> int:
    if arguments.ends:
        return _view_ends(arguments)
    from evaluation.view import videos
    from jaxsim.render import viewer

    video_paths = [path for path in (arguments.gif, arguments.mp4) if path]
    for path, ending in ((arguments.gif, ".gif"), (arguments.mp4, ".mp4")):
        if path:
            if path.suffix != ending:
                raise ValueError(f"{path} must end in {ending}")
            videos.check(path)
    out = arguments.out or Path("view.html")
    if out.is_dir():
        raise ValueError(f"{out} is a directory; name a file, as --out episode.html")
    if not 16 <= arguments.pixels <= MOST_VIDEO_PIXELS:
        raise ValueError(f"pixels is {arguments.pixels}; it must be from 16 to {MOST_VIDEO_PIXELS}")
    episodes = arguments.episode or [0]
    sources = max(1, len(arguments.agent)) * len(episodes)
    if sources > viewer.MOST_FILMS:
        raise ValueError(f"{sources} episodes do not fit on a page; leave some out")
    films = _films(arguments, episodes)
    text = viewer.page(films)
    write_whole(out, text)
    pixels = arguments.pixels - arguments.pixels % 2
    notes = [videos.write(films, path, pixels) for path in video_paths]
    if not arguments.quiet:
        for film in films:
            print(f"{film.title}: {film.ticks} ticks; {film.facts}")
            if film.note:
                print(film.note)
        print(f"{out}: {len(text.encode()) / 1000:.0f} kB")
        for note in filter(None, notes):
            print(note)
    return 0


def _view_ends(arguments: argparse.Namespace) -> int:
    """Write a page of each episode that a report names, and link them from it."""
    from evaluation import records, view
    from evaluation.report import html
    from jaxsim.render import viewer

    run = arguments.source
    names = ("level", "difficulty", "seed", "lifetime", "trial", "episode", "out", "gif", "mp4")
    _refuse(arguments, "--ends", *names)
    if run is None or not run.is_dir():
        raise ValueError(f"SOURCE is {run or 'missing'}; --ends needs the directory of a run")
    page = run / "report.html"
    reports = [path for name in REPORTS if (path := run / name).is_file()]
    if not (reports and page.is_file()):
        raise ValueError(
            f"{run} has no report.html with its {' or '.join(REPORTS)}; name a finished run"
        )
    run_records = records.read_run(run)
    try:
        measure = json.loads(reports[0].read_text(encoding="utf-8"))["measure"]
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{reports[0]} is not the report of a run; play the run again") from error
    agent = _moved_agent(arguments)
    coordinates = html.ends(run_records, measure)
    pages = {
        html.view_of(lifetime, episode): viewer.page(
            [view.of_run(run, lifetime=lifetime, episode=episode, agent=agent)]
        )
        for lifetime, episode in coordinates
    }
    for name, text in pages.items():
        (run / name).parent.mkdir(exist_ok=True)
        write_whole(run / name, text)
    write_whole(page, html.linked(page.read_text(encoding="utf-8"), pages))
    if not arguments.quiet:
        print(f"{len(pages)} pages in {run / html.VIEWS}, linked from {page}")
    return 0


def _films(arguments: argparse.Namespace, episodes: list[int]) -> "list[Film]":
    from evaluation import view

    source = arguments.source
    if source is None:
        _refuse(arguments, "a level", "lifetime", "trial")
        level = 200 if arguments.level is None else arguments.level
        return [
            view.of_level(
                level,
                arguments.difficulty or "easy",
                agent=agent,
                seed=arguments.seed or 0,
                episode=episode,
            )
            for agent in arguments.agent or ["pd"]
            for episode in episodes
        ]
    if not source.exists():
        raise ValueError(f"there is no {source}")
    if arguments.trial is not None:
        _refuse(arguments, "a trial", "level", "difficulty", "seed", "lifetime", "agent")
        return [view.of_trial(source, trial=arguments.trial, episode=e) for e in episodes]
    if source.is_file() and source.suffix != ".parquet":
        names = ("level", "difficulty", "seed", "lifetime", "agent", "episode")
        _refuse(arguments, "a transcript", *names)
        return [view.of_transcript(source)]
    _refuse(arguments, "a run", "level", "difficulty", "seed")
    return _of_run(arguments, episodes)


def _of_run(arguments: argparse.Namespace, episodes: list[int]) -> "list[Film]":
    from evaluation import records, view

    source = arguments.source
    agent = _moved_agent(arguments)
    first = arguments.lifetime
    if first is None:
        first = records.read_run(source).first_lifetime
    return [view.of_run(source, lifetime=first, episode=e, agent=agent) for e in episodes]


def _moved_agent(arguments: argparse.Namespace) -> str | None:
    """New name of a run's agent that has moved, None for the agent of the records."""
    if len(arguments.agent) > 1:
        raise ValueError("a run has one agent; name it once, where it has moved")
    return arguments.agent[0] if arguments.agent else None


def _refuse(arguments: argparse.Namespace, what: str, *names: str) -> None:
    """Refuse options that do not apply to a source."""
    for name in names:
        if getattr(arguments, name) not in (None, []):
            raise ValueError(f"--{name} does not go with {what}; leave it out")
