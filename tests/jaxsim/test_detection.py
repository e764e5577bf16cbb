"""A detector that joins a controller: every function of both reaches its part of the memory."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxsim import agents
from jaxsim.agents import reference
from jaxsim.agents.base import Agent, NoveltyPrediction
from jaxsim.agents.detection import Detector, joined
from jaxsim.agents.sight import see
from jaxsim.worlds.cartpole3d.types import Observation, Vector

KEY = jax.random.key(0)


def observation(x):
    zero, no = np.float32(0), np.asarray(False)
    nowhere = Vector(zero, zero, zero)
    place, pole = Vector(np.float32(x), zero, zero), (zero, zero, zero, np.float32(1))
    return Observation(place, nowhere, pole, nowhere, (nowhere,) * 4, (nowhere,) * 4, (no,) * 4)


def noted(word, number):
    """A function of a memory and another argument that leaves a note of both."""
    return lambda memory, argument: (*memory, (word, number(argument)))


CONTROLLER = Agent(
    "steady",
    lambda memory, observation, key: (
        jnp.int32(3),
        NoveltyPrediction(jnp.int32(9), jnp.float32(0.9), jnp.float32(0.8)),
        (*memory, ("act", float(observation.cart_position.x))),
    ),
    lambda key: (("init", int(jax.random.key_data(key)[1])),),
    noted("begin", lambda key: int(jax.random.key_data(key)[1])),
    noted("learn", str),
    noted("tell", str),
    lambda memory: jnp.int32(201),
    trace=lambda memory, observation, action: (memory, float(observation.cart_position.x), action),
    enter=noted("enter", str),
    assign=noted("assign", int),
    fault=lambda memory: jnp.int32(len(memory)),
    faults=("tired", "lost"),
    costly=True,
)
PREDICTION = NoveltyPrediction(jnp.int32(4), jnp.float32(0.4), jnp.float32(0.5))
DETECTOR = Detector(
    "odd",
    lambda memory, transition: ((*memory, transition), PREDICTION),
    lambda: ("born",),
    lambda memory: (*memory, "opened"),
    lambda memory: jnp.int32(104),
    noted("tell", str),
)


def test_a_joined_agent_asks_each_part_for_what_is_its_own():
    agent = joined(CONTROLLER, DETECTOR)
    assert (agent.name, agent.faults, agent.costly) == ("steady+odd", ("tired", "lost"), True)
    assert agent.acting is CONTROLLER
    memory = agent.init(jax.random.key(7))
    assert (memory.controller, memory.detector) == ((("init", 7),), ("born",))
    memory = agent.begin(memory, jax.random.key(8))
    assert memory.controller[1:] == (("begin", 8),) and memory.detector == ("born", "opened")
    action, prediction, memory = agent.act(memory, observation(1.5), KEY)
    assert int(action) == 3 and prediction is PREDICTION
    first = memory.detector[-1]
    assert bool(first.first) and float(first.after.reported.x) == 1.5
    _, _, memory = agent.act(memory, observation(2.5), KEY)
    second = memory.detector[-1]
    assert (bool(second.first), int(second.action)) == (False, 3)
    assert (float(second.before.reported.x), float(second.after.reported.x)) == (1.5, 2.5)
    assert memory.controller[2:] == (("act", 1.5), ("act", 2.5))
    np.testing.assert_array_equal(memory.before.reported.x, see(observation(2.5)).reported.x)
    assert int(agent.named(memory)) == 104  # the detector's, not the controller's
    assert int(agent.fault(memory)) == 4
    assert agent.trace(memory, observation(0.5), 2) == (memory.controller, 0.5, 2)
    for word, call in (("learn", agent.learn), ("enter", agent.enter), ("assign", agent.assign)):
        after = call(memory, 5)
        assert after.controller == (*memory.controller, (word, 5 if word == "assign" else "5"))
        assert after.detector is memory.detector
    after = agent.tell(memory, "hint")
    assert after.controller[-1] == after.detector[-1] == ("tell", "hint")
    again = agent.begin(memory, KEY)
    assert bool(again.first)


def test_exact_sensors_are_watched_as_the_detector_says():
    surer = NoveltyPrediction(jnp.int32(5), jnp.float32(0.9), jnp.float32(0.5))
    agent = joined(CONTROLLER, replace(DETECTOR, watch_exact=lambda memory, _: (memory, surer)))
    assert joined(CONTROLLER, DETECTOR).exact is None
    memory = agent.init(KEY)
    for player, expected in ((agent, PREDICTION), (agent.exact, surer)):
        action, prediction, after = player.act(memory, observation(0.5), KEY)
        assert int(action) == 3 and prediction is expected
        assert after.controller == (*memory.controller, ("act", 0.5))
    assert replace(agent.exact, act=agent.act, exact=agent.exact) == agent


@pytest.mark.parametrize("name", ["pd", "greedy", "nothing"])
def test_what_a_controller_lacks_a_joined_agent_lacks(name):
    agent = joined(agents.get(name), DETECTOR)
    assert (agent.trace, agent.faults, agent.costly) == (None, (), False)
    assert agent.fault is reference.pd.fault
