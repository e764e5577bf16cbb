"""The command of `make gpu-check`, on the processor."""

import json
from types import SimpleNamespace

import numpy as np
import pytest

import jaxsim
from benchmarks import gpu_check
from evaluation import scanner
from jaxsim import backend


def test_without_the_device_nothing_is_measured(tmp_path, capfd):
    out = tmp_path / "gpu.json"
    assert gpu_check.main(["--platform", "tpu", "--out", str(out)]) == gpu_check.NO_DEVICE
    assert 'JAX runs on cpu here, not on tpu; pip install "jax[tpu]"' in capfd.readouterr().err
    assert not out.exists()


def test_records_are_compared_however_they_were_played(monkeypatch):
    result = gpu_check.same_results("CartPole")
    assert result["holds"]
    assert result["steps"] > gpu_check.LIFETIMES * gpu_check.EPISODES
    assert len(result["same"]) == 3
    play = scanner.play

    def other_chunks(*arguments, options, **more):
        seed = int(options.chunk is not None)
        return play(*arguments, options=options, seed=seed, **more)

    monkeypatch.setattr(scanner, "play", other_chunks)
    result = gpu_check.same_results("CartPole")
    assert not result["holds"]
    assert [way for way, same in result["same"].items() if not same] == ["chunks of 64 lanes"]


@pytest.mark.parametrize("holds", [True, False])
def test_the_exit_code_says_what_holds(monkeypatch, tmp_path, holds):
    monkeypatch.setattr(
        gpu_check, "in_process", lambda part, given: {"holds": holds or part == "bench"}
    )
    out = tmp_path / "gpu.json"
    assert gpu_check.main(["--out", str(out)]) == int(not holds)
    assert list(json.loads(out.read_text())) == list(gpu_check.PARTS)


def test_layouts_are_compared(monkeypatch):
    rows = gpu_check.layouts("CartPole", 300)
    assert [row["other_lengths"] for row in rows] == [0] * 6
    assert len({(row["lanes"], row["ticks"], row["groups"], row["turns"]) for row in rows}) == 6
    assert all(row["steps_per_second"] > 0 for row in rows)
    play = jaxsim.rollout

    def by_ticks(*arguments):
        return play(*arguments, seed=backend.layout().ticks)

    monkeypatch.setattr(jaxsim, "rollout", by_ticks)
    changed = [row["other_lengths"] for row in gpu_check.layouts("CartPole", 300)]
    assert changed[3] > 100
    assert changed[:3] + changed[4:] == [0] * 5


def test_rollouts_are_compiled_with_graphs_and_without(monkeypatch):
    used = []

    def rollout(env, params, agent, episodes, *, variant):
        used.append(backend.GRAPHS)
        return SimpleNamespace(length=np.full(episodes, 100))

    monkeypatch.setattr(jaxsim, "rollout", rollout)
    rows = gpu_check.graphs({"200": 8})
    assert [(row["workload"], row["episodes"], row["graphs"]) for row in rows] == [
        ("200", 8, False),
        ("200", 8, True),
    ]
    assert {row["search"] for row in rows} == {"in a loop"}  # on the processor
    assert used == [{}] * 3 + [backend.GRAPHS] * 3
    assert all(row["steps_per_second"] > 0 for row in rows)


@pytest.mark.long
def test_ticks_are_held_against_recordings():
    result = gpu_check.in_process("parity", ["--platform", "cpu"])
    assert result is not None and result["holds"]
    assert result["ticks"]["free"]["ticks"] > 500
