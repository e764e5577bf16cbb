"""Other simulators that are measured beside ours.

Their programs are scripts of the repository, in `benchmarks/peers`; a wheel does not hold them, and
nothing here imports them.
"""

from dataclasses import dataclass

from evaluation.bench.process import ROOT
from evaluation.bench.workloads import CAMERA, FLOOD, NOMINAL

CLASSIC = "CartPole-v1"  # a workload of the light-weight reference only

NOT_FOUND = (
    "its program is in the folder benchmarks/peers of the repository: run the command from a clone"
)


@dataclass(frozen=True)
class PeerProgram:
    """Another simulator.

    Attributes:
      module: program to run with the number of cores as its argument.
      workloads: names of its workloads.
      about: what is measured, in a few words.
    """

    module: str
    workloads: tuple[str, ...]
    about: str


PEERS: dict[str, PeerProgram] = {
    "pybullet": PeerProgram(
        "benchmarks.peers.bullet_scene",
        (NOMINAL, FLOOD),
        "the scene in PyBullet with the PD policy and its readout, a process a core; building the "
        "scene of an episode is not counted",
    ),
    "mujoco": PeerProgram(
        "benchmarks.peers.mujoco_rollout",
        (NOMINAL,),
        "the scene in mujoco.rollout, a thread a core; open loop with random pushes, no end of "
        "episodes",
    ),
    "mujoco_renderer": PeerProgram(
        "benchmarks.peers.mujoco_renderer",
        (CAMERA,),
        "pictures of the scene by MuJoCo's software renderer, one after the other, without "
        "multisampling and without shadows, which ours has",
    ),
    "gymnasium": PeerProgram(
        "benchmarks.peers.gymnasium_cartpole",
        (CLASSIC,),
        "the two-dimensional cart and pole, its NumPy vector environment, random pushes",
    ),
    "gymnax": PeerProgram(
        "benchmarks.peers.gymnax_cartpole",
        (CLASSIC,),
        "the two-dimensional cart and pole, scanned, random pushes",
    ),
}


def exists(module: str) -> bool:
    """Whether the program of a module exists."""
    return ROOT.joinpath(*module.split(".")).with_suffix(".py").is_file()
