"""`jaxsim sailon serve`."""

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from evaluation.arguments import Commands, add_command, add_out

if TYPE_CHECKING:
    from evaluation.sailon.pictures import Pictures

BROKER: Final = "amqp://guest:guest@127.0.0.1:5672/%2F"
ENDED_EARLY: Final = 1
"""Exit code if an agent was gone before the end of its experiment."""

EXAMPLES = """examples:
  jaxsim sailon serve examples/sailon/experiment.json --out runs/served
  python examples/sailon/amqp_agent.py --broker amqp://guest:guest@127.0.0.1:5672/%2F
  jaxsim sailon serve experiment.json --agents 4 --broker amqps://me:secret@broker.example/lab \\
    --out runs/served

Plays the generator's side of its RabbitMQ transport (version 0.8). Every agent that requests an
experiment plays this one on its own; results are those of `jaxsim sailon run` with the same agent.
DIR/NUMBER-NAME of an agent holds results.parquet, rewritten after every trial, results.csv and
experiment.json. Exit code 0: all agents have played to the end; 1: one was gone before; 2: wrong
input, or no broker.
"""


def add_to(parts: Commands) -> None:
    """Add `serve` to the parts of `jaxsim sailon`."""
    serve = add_command(
        parts, "serve", "play an experiment with agents behind a RabbitMQ broker", EXAMPLES
    )
    serve.add_argument(
        "experiment", type=Path, metavar="EXPERIMENT", help="an experiment, or settings"
    )
    serve.add_argument(
        "--broker", default=BROKER, metavar="URL", help=f"({BROKER})".replace("%", "%%")
    )
    serve.add_argument(
        "--agents", type=int, default=1, metavar="N", help="number of agents to wait for (1)"
    )
    add_image(serve)
    add_out(serve)
    serve.add_argument("--quiet", action="store_true", help="print errors only")
    serve.set_defaults(handler=_serve)


def add_image(part: argparse.ArgumentParser) -> None:
    """Add the option for pictures in feature vectors."""
    part.add_argument(
        "--image",
        type=int,
        metavar="PIXELS",
        help="send pictures of this height and width in feature vectors (null; extra images)",
    )


def pictures(pixels: int | None) -> "Pictures | None":
    """`Pictures` for the option `--image`; None without it."""
    if pixels is None:
        return None
    from evaluation.sailon.pictures import Pictures

    return Pictures(pixels)


def _serve(arguments: argparse.Namespace) -> int:
    # Imported here, so that `jaxsim --help` does not wait for JAX.
    from evaluation.files import check_output_directory
    from evaluation.sailon import experiment
    from evaluation.sailon.serve import server, transport

    most = server.MOST_AGENTS
    if not 1 <= arguments.agents <= most:
        raise ValueError(f"agents is {arguments.agents}; it must be from 1 to {most}")
    renderer = pictures(arguments.image)
    plan = experiment.load(arguments.experiment)
    check_output_directory(arguments.out, arguments.overwrite)
    note = (lambda text: None) if arguments.quiet else _say
    broker = transport.Rabbit(arguments.broker, note=note)
    try:
        serving = server.ExperimentServer(
            plan, broker, agents=arguments.agents, out=arguments.out, pictures=renderer, note=note
        )
        note(f"waiting for {arguments.agents} agents")
        serving.serve()
    finally:
        broker.close()
    return ENDED_EARLY if any(seat.talk.gone for seat in serving.seats) else 0


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
