"""The recordings of the original as arrays, one tick a row."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from jaxsim.worlds.cartpole3d import State, state_from_arrays
from jaxsim.worlds.cartpole3d.types import Config, Observation

CARTPOLE, WALLS, BLOCKS = 0, 1, 2  # bodies in the contact table
BLOCK_COLUMNS = 9  # position, velocity, spin; blocks on lines have more
KINDS = ("free", "wall", "pair", "structure")
"""Classes of ticks by their hardest contact: none, a block and a wall, two blocks, cart or pole."""


@dataclass(frozen=True)
class Recording:
    """One recorded file.

    Attributes:
      name: file name without its ending.
      seeds: (E,) episode seeds.
      lengths: (E,) agent steps.
      state: true state of every row, named as `state_from_arrays` wants it.
      reported: what the original reported in every row.
      episode: (R,) index of the row's episode.
      tick: (R,) row within its episode; 0 is the reset.
      action: (R,) that led to the row.
      reward: (R,)
      done: (R,) bool
      kind: (R,) contacts of the tick that led to the row: "free", "wall", "pair" or "structure".
      covered: (R,) bool, rows whose blocks and contacts are recorded.
    """

    name: str
    seeds: np.ndarray
    lengths: np.ndarray
    state: dict[str, np.ndarray]
    reported: dict[str, np.ndarray]
    episode: np.ndarray
    tick: np.ndarray
    action: np.ndarray
    reward: np.ndarray
    done: np.ndarray
    kind: np.ndarray
    covered: np.ndarray

    @property
    def steps(self) -> np.ndarray:
        """Rows that an action led to; the row before each is the state it started from."""
        return np.flatnonzero((self.tick > 0) & self.covered)

    @property
    def resets(self) -> np.ndarray:
        """Rows after a reset."""
        return np.flatnonzero((self.tick == 0) & self.covered)

    def errors(
        self, rows: np.ndarray, state: dict[str, np.ndarray], reported: dict[str, np.ndarray]
    ) -> dict[str, np.ndarray]:
        """Largest error of each field in each row.

        Args:
          rows: (n,) of the recording.
          state: what ours is in these rows, as `state_to_arrays` gives it.
          reported: what ours reports, as `observation_arrays` gives it.

        Returns:
          (n,) by field of `state`, by field of `reported` after the word "reported", and the two
          parts of `pole_jw`: "pole_tilt_rate" across the pole's axis and "pole_spin" about it.
        """
        alive = self.state["block_alive"][rows][..., None]
        out = {name: state[name] - values[rows] for name, values in self.state.items()}
        out["block_pos"] = out["block_pos"] * alive
        out["cart_yaw"] = np.remainder(out["cart_yaw"] + np.pi, 2 * np.pi) - np.pi
        for name, values in self.reported.items():
            out[f"reported {name}"] = reported[name] - values[rows]
        out["pole_tilt_rate"], out["pole_spin"] = out["pole_jw"][:, :2], out["pole_jw"][:, 2]
        return {n: np.abs(error).reshape(len(rows), -1).max(axis=1) for n, error in out.items()}

    def states(self, rows: np.ndarray, config: Config | None = None) -> State:
        """States of some rows, to be advanced by one tick; float64 with four slots by default."""
        arrays = {name: values[rows] for name, values in self.state.items()}
        return state_from_arrays(arrays, config or Config(dtype="float64"))


def hardness(bodies: set[int]) -> int:
    """Index into `KINDS` of a contact between two bodies."""
    return 3 if CARTPOLE in bodies else 1 if WALLS in bodies else 2


def _contact_kinds(data: np.lib.npyio.NpzFile, first_row: np.ndarray, rows: int) -> np.ndarray:
    """Class of each row: the hardest contact of its tick."""
    rank = np.zeros(rows, int)
    for contact, episode, tick in zip(data["con"], data["con_ep"], data["con_tick"], strict=True):
        row = first_row[episode] + tick
        rank[row] = max(rank[row], hardness({int(contact[0]), int(contact[3])}))
    return np.array(KINDS)[rank]


def read_recording(path: Path, max_blocks: int = 4) -> Recording:
    """Read one file."""
    data = np.load(path)
    rows = len(data["action"])
    last = np.cumsum(data["n_rows"])
    first_row = last - data["n_rows"]
    episode = np.repeat(np.arange(len(last)), data["n_rows"])
    covered = np.cumsum(data["n_blocks"]) <= len(data["blk"])
    slot = np.arange(max_blocks)
    alive = (slot < data["n_blocks"][:, None]) & covered[:, None]
    visible_position = np.zeros((rows, max_blocks, 3))
    visible_position[..., 2] = 5.0  # where an empty slot is kept is of no account
    velocity = np.zeros((rows, max_blocks, 3))
    visible_position[alive], velocity[alive] = data["blk"][:, :3], data["blk"][:, 3:6]
    position, visible_speed = visible_position, velocity
    if data["blk"].shape[1] > BLOCK_COLUMNS:
        # Blocks on lines are seen where they were a tick ago, and as if they stood.
        position, visible_speed = _a_tick_later(visible_position, velocity, episode), 0.0 * velocity
    state = {
        "cart_pos": data["cart_pos"][:, :2],
        "cart_yaw": 2 * np.arctan2(data["cart_quat"][:, 2], data["cart_quat"][:, 3], dtype=float),
        "cart_vel": data["cart_vel"][:, :2],
        "cart_yaw_rate": data["obs_cart_omega"][:, 2],
        "pole_jq": data["pole_jq"],
        "pole_jw": data["pole_jw"],
        "block_pos": position,
        "block_vel": velocity,
        "block_alive": alive,
    }
    reported = {
        "cart_position": data["obs_cart_pos"] * [1, 1, 0],  # the original reports z as 0
        "cart_velocity": data["obs_cart_vel"] * [1, 1, 0],
        "pole_quaternion": data["obs_pole_quat"],
        "pole_velocity": data["obs_pole_omega"],
        "block_position": visible_position * alive[..., None],
        "block_velocity": visible_speed * alive[..., None],
        "block_alive": alive,
    }
    return Recording(
        path.stem,
        data["seeds"],
        data["n_rows"] - 1,
        {name: values.astype(float) for name, values in state.items()},
        {name: values.astype(float) for name, values in reported.items()},
        episode,
        np.arange(rows) - first_row[episode],
        data["action"],
        data["reward"],
        data["done"],
        _contact_kinds(data, first_row, rows),
        covered,
    )


def _a_tick_later(position: np.ndarray, velocity: np.ndarray, episode: np.ndarray) -> np.ndarray:
    """Positions of which each row shows those of a tick before: the next row's, or moved on."""
    later = position + 0.02 * velocity
    follows = episode[1:] == episode[:-1]
    later[:-1][follows] = position[1:][follows]
    return later


def observation_arrays(observation: Observation) -> dict[str, np.ndarray]:
    """An observation under the names of `Recording.reported`; blocks as (..., N, 3)."""

    def stack(leaves: tuple[object, ...]) -> np.ndarray:
        return np.stack([np.asarray(leaf, float) for leaf in leaves], axis=-1)

    o = observation
    alive = o.block_alive
    stacked = np.ndim(alive[0]) > np.ndim(o.cart_position.x)

    def blocks(vectors: tuple[Any, ...]) -> np.ndarray:
        if stacked:
            return stack(vectors[0])
        return np.stack([stack(v) for v in vectors], axis=-2)

    return {
        "cart_position": stack(o.cart_position),
        "cart_velocity": stack(o.cart_velocity),
        "pole_quaternion": stack(o.pole_quaternion),
        "pole_velocity": stack(o.pole_velocity),
        "block_position": blocks(o.block_position),
        "block_velocity": blocks(o.block_velocity),
        "block_alive": np.asarray(alive[0], float) if stacked else stack(alive),
    }
