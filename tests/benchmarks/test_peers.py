"""The programs of the peers: they say when they cannot run, and play what they claim to."""

import sys
from types import SimpleNamespace

import numpy as np
import pytest

from benchmarks.peers import (
    bullet_scene,
    gymnasium_cartpole,
    gymnax_cartpole,
    mujoco_renderer,
    mujoco_rollout,
)
from evaluation.bench import peers
from evaluation.bench.program import answer
from jaxsim import agents
from jaxsim.worlds.cartpole3d import Observation, Params
from jaxsim.worlds.cartpole3d.types import Vector

PROGRAMS = {
    "pybullet": bullet_scene.BulletPeer(1),
    "mujoco": mujoco_rollout.MujocoPeer(1),
    "mujoco_renderer": mujoco_renderer.MujocoPictures(),
    "gymnasium": gymnasium_cartpole.GymnasiumPeer(),
    "gymnax": gymnax_cartpole.GymnaxPeer(),
}


@pytest.mark.parametrize("name", peers.PEERS)
def test_every_peer_has_a_program(name):
    peer = peers.PEERS[name]
    assert peers.exists(peer.module)
    assert type(PROGRAMS[name]).__module__ == peer.module


def test_a_program_that_is_not_shipped_is_not_found():
    assert not peers.exists("benchmarks.peers.havok")


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_peer_that_is_not_installed_says_how_to_get_it(name, monkeypatch):
    package = name.partition("_")[0]
    monkeypatch.setitem(sys.modules, package, None)
    reply = answer(PROGRAMS[name], {"workload": peers.PEERS[name].workloads[0]})
    assert set(reply) == {"unavailable"}
    assert f"{package} is not installed: pip install 'jaxsim-novelty[" in reply["unavailable"]


def test_the_policy_of_the_bullet_scene_is_pd():
    draws = np.random.default_rng(0)
    quaternions = draws.normal(size=(200, 4)) * [0.1, 0.1, 1, 1]
    quaternions /= np.linalg.norm(quaternions, axis=1, keepdims=True)
    rates = draws.normal(size=(200, 3))
    zero = np.zeros(200)
    observation = Observation(
        Vector(zero, zero, zero),
        Vector(zero, zero, zero),
        tuple(quaternions.T),
        Vector(*rates.T),
        (),
        (),
        (),
    )
    expected = agents.get("pd").act((), observation, None)[0]
    ours = [bullet_scene.pd(q, w) for q, w in zip(quaternions, rates, strict=True)]
    np.testing.assert_array_equal(ours, expected)
    assert set(ours) == {1, 2, 3, 4}


def test_the_end_test_of_the_bullet_scene():
    limit = float(Params().lean_limit)
    for axis in (0, 1):
        for angle, fallen in ((0.99 * limit, False), (1.01 * limit, True)):
            q = np.zeros(4)
            q[axis], q[3] = np.sin(angle / 2), np.cos(angle / 2)
            assert bullet_scene.has_fallen(q, limit) == fallen


def test_blocks_bounce_in_the_mujoco_scene():
    """They keep about the speed that they start with, and stay in the room."""
    pytest.importorskip("mujoco", reason="needs the extra jaxsim-novelty[bench]")
    program = mujoco_rollout.MujocoPeer(1)
    program.prepare("200")
    rate = program.measure("200", 0.0)
    assert rate.steps == 3 * 256 * 200
    for blocks, batch in zip(mujoco_rollout.BLOCKS, program.batches, strict=True):
        time, qpos, qvel = np.split(batch.states, [1, 1 + 7 + 7 * blocks], axis=2)
        np.testing.assert_allclose(time[:, -1], 4.0, atol=1e-9)
        assert np.isfinite(batch.states).all()
        place = qpos[..., 7:].reshape(256, 200, blocks, 7)[..., :3]
        # A wall is as soft as a spring, so the middle of a block comes up to its face.
        assert np.abs(place[..., :2]).max() < 5.0
        assert place[..., 2].min() > -0.1
        assert place[..., 2].max() < 10.0
        assert np.median(np.ptp(place[:, :, 0, 0], axis=1)) > 8  # from wall to wall
        speed = np.linalg.norm(qvel[..., 6:].reshape(256, 200, blocks, 6)[..., :3], axis=-1)
        # Drag of 0.04 over 4 s, and what cart and pole take.
        assert 0.7 < speed[:, -1].mean() / speed[:, 0].mean() < 1.0


def test_gymnasium_is_stepped(monkeypatch):
    pytest.importorskip("gymnasium", reason="needs the extra jaxsim-novelty[gymnasium]")
    monkeypatch.setattr(gymnasium_cartpole, "LANES", 8)
    program = gymnasium_cartpole.GymnasiumPeer()
    program.prepare("CartPole-v1")
    before = program.envs.unwrapped.state.copy()
    assert program.measure("CartPole-v1", 0.0).steps == 8 * gymnasium_cartpole.STEPS
    assert (program.envs.unwrapped.state != before).all()


@pytest.mark.slow
def test_gymnax_is_stepped(monkeypatch):
    pytest.importorskip("gymnax", reason="needs the extra jaxsim-novelty[gymnax]")
    monkeypatch.setattr(gymnax_cartpole, "LANES", 8)
    program = gymnax_cartpole.GymnaxPeer()
    program.prepare("CartPole-v1")
    before = program.carry[1].x
    assert program.measure("CartPole-v1", 0.0).steps == 8 * gymnax_cartpole.STEPS
    assert (program.carry[1].x != before).all()


def test_every_process_of_the_bullet_scene_has_an_episode(monkeypatch):
    """Also on a machine with more cores than the episodes that are usually played."""
    monkeypatch.setitem(sys.modules, "pybullet", SimpleNamespace(getAPIVersion=lambda: 0))
    monkeypatch.setattr(bullet_scene, "_start", lambda params, starts: starts)
    monkeypatch.setattr(bullet_scene, "draw_episodes", lambda *cell: ({}, list(cell[2])))
    monkeypatch.setattr(bullet_scene, "mean_blocks", lambda starts: 3.0)
    for processes, count in ((2, 64), (96, 96)):
        program = bullet_scene.BulletPeer(processes)
        program.prepare("200")
        crew = program.crews["200"]
        assert len(crew) == processes and all(crew)
        assert sorted(number for starts in crew for number in starts) == list(range(count))


@pytest.mark.slow
def test_a_process_that_plays_the_bullet_scene_prints_nothing(capfd):
    """The engine itself has something to say about every scene that is built."""
    pytest.importorskip("pybullet", reason="needs the extra jaxsim-novelty[parity]")
    program = bullet_scene.BulletPeer(1)
    program.prepare("200")
    assert program.measure("200", 0.5).steps > 200  # of more than one episode
    for process in program.crews["200"]:
        process.close()
    assert capfd.readouterr().out == ""
