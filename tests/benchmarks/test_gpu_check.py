"""The command of `make gpu-check`, on the processor."""

import json

import pytest

from benchmarks import gpu_check
from evaluation import scanner


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


@pytest.mark.long
def test_ticks_are_held_against_recordings():
    result = gpu_check.in_process("parity", ["--platform", "cpu"])
    assert result is not None and result["holds"]
    assert result["ticks"]["free"]["ticks"] > 500
