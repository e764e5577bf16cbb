"""An agent for the interface of the WSU novelty generator: it balances, and watches the blocks.

    jaxsim sailon run --agent examples/sailon/TA2.py examples/sailon/experiment.json --out runs/demo

Nothing in here is of this package: the same file runs under the generator, whose class of this name
it derives from.
"""

import pickle

from objects.TA2_logic import TA2Logic

TICK = 0.02  # s
RATE = 0.3  # s, weight of the pole's lean against the rate of its lean
DRAG = 0.04  # 1/s and 1/m, what free blocks lose
ROOM = (-4.3, 4.3), (-4.3, 4.3), (0.6, 9.3)  # m, where no wall is near
APART = 1.3  # m, centres of blocks that do not touch
CLEAR = 2.2  # m, a block's distance from the cart at which neither cart nor pole is near
ODD = 0.02  # m/s, change of velocity in a tick that nothing known explains
AXES = "xyz"


def action_for(pole):
    """Push the cart under the pole's lean and its rate."""
    x, y, z, w = (pole[f"{name}_quaternion"] for name in "xyzw")
    wx, wy, wz = (pole[f"{name}_velocity"] for name in AXES)
    lx, ly, lz = 2 * (x * z + w * y), 2 * (y * z - w * x), 1 - 2 * (x * x + y * y)
    ux = lx + RATE * (wy * lz - wz * ly)
    uy = ly + RATE * (wz * lx - wx * lz)
    if abs(ux) >= abs(uy):
        return "right" if ux > 0 else "left"
    return "forward" if uy > 0 else "backward"


def place(body):
    """Position of a body, m."""
    return [body[f"{axis}_position"] for axis in AXES]


def speed(body):
    """Velocity of a body, m/s."""
    return [body[f"{axis}_velocity"] for axis in AXES]


def distance(one, other):
    """Distance of two points."""
    return sum((a - b) ** 2 for a, b in zip(one, other, strict=True)) ** 0.5


def blocks_of(vector):
    """Blocks by number or name: a list with ids, or in messages of 2021 fields block_0, block_1."""
    if "blocks" in vector:
        return {block["id"]: block for block in vector["blocks"]}
    return {name: block for name, block in vector.items() if name.startswith("block_")}


def flies_freely(number, block, vector):
    """Whether nothing is near that could push a block."""
    here = place(block)
    inside = all(low < at < high for at, (low, high) in zip(here, ROOM, strict=True))
    others = [b for i, b in blocks_of(vector).items() if i != number]
    alone = all(distance(here, place(b)) > APART for b in others)
    return inside and alone and distance(here[:2], place(vector["cart"])[:2]) > CLEAR


class TA2Agent(TA2Logic):
    """Balances by rule, and reports novelty once blocks are pushed by nothing that is seen."""

    def __init__(self):
        super().__init__()
        self.possible_answers = [{"action": a} for a in ("left", "right", "forward", "backward")]
        self.end_training_early = True
        self.last = None
        self.odd = 0

    def training_episode_start(self, episode_number):
        """Forget the last feature vector."""
        self.last = None

    def testing_episode_start(self, episode_number):
        """Forget the last feature vector."""
        self.last = None

    def training_instance(self, feature_vector, feature_label):
        """Balance."""
        return {"action": action_for(feature_vector["pole"])}

    def testing_instance(self, feature_vector, novelty_indicator=None):
        """Balance, and look at the blocks."""
        if self.last is not None:
            self.odd += self.oddities(self.last, feature_vector)
        self.last = feature_vector
        return {"action": action_for(feature_vector["pole"])}

    def oddities(self, before, after):
        """Number of free blocks whose velocity changed."""
        now = blocks_of(after)
        count = 0
        for number, block in blocks_of(before).items():
            if number in now and flies_freely(number, block, before):
                v = speed(block)
                left = 1 - TICK * DRAG * (1 + distance(v, (0, 0, 0)))
                expected = [left * component for component in v]
                count += distance(expected, speed(now[number])) > ODD
        return count

    def training_episode_end(self, performance, feedback=None):
        """Report no novelty."""
        return 0.0, 0.5, 0, {}

    def testing_episode_end(self, performance, feedback=None):
        """Report what was odd in this trial so far."""
        self.log.info("performance %.3f, %d odd blocks", performance, self.odd)
        probability = self.odd / (self.odd + 3)
        return probability, 0.5, int(self.odd >= 3), {}

    def trial_start(self, trial_number, novelty_description):
        """Begin to count."""
        self.odd = 0

    def save_model(self, filename):
        """Save what was learnt, which is nothing."""
        with open(filename, "wb") as file:
            pickle.dump({"rate": RATE}, file)

    def reset_model(self, filename):
        """Load it again."""
        with open(filename, "rb") as file:
            pickle.load(file)


if __name__ == "__main__":
    TA2Agent().run()
