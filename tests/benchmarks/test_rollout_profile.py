"""The page on where a rollout's time goes."""

import numpy as np
import pytest

import jaxsim
from benchmarks import rollout_profile
from benchmarks.rollout_profile import (
    PARTS,
    Parts,
    Profile,
    group_size,
    page,
    shared_rows,
    wave,
)
from jaxsim import agents
from jaxsim.rounds import Sizes


def test_the_page_has_every_part_and_how_near_the_limit_is():
    parts = [part for part in PARTS if part != "and friction"]
    packed = ({"full ticks": 50}, {"full ticks": 0.125})
    slow = Profile(dict.fromkeys(parts, 10.0), *packed, 1000, 0.8, 30, 1500.0, 2500.0, 100e9)
    fast = slow._replace(nanoseconds=dict.fromkeys(PARTS, 5.0), groups={}, at_work=0.9)
    profiles = {("200", "default"): slow, ("200", "configured"): fast, ("mix", "default"): fast}
    lines = list(page(profiles))
    heads = "level 200, default | level 200, configured | every level, default"
    assert f"| ns of a step | {heads} |" in lines
    assert all(f"| {part} | 10.0 | 5.0 | 5.0 |" in lines for part in parts)
    assert "| and friction |  | 5.0 | 5.0 |" in lines
    assert "| **all** | **60.0** | **35.0** | **35.0** |" in lines
    assert "| lanes at work | 80 % | 90 % | 90 % |" in lines
    # 1,500 operations for 0.8 and 0.9 steps at 100 a nanosecond take 18.75 ns and 16.7 ns.
    assert "| all, with free ticks at their limit | 68.8 | 46.7 |  |" in lines
    # 1,500 operations in 10 ns of a step, of whose lanes 0.8 are at work.
    assert "| operations a second in free ticks, 10^9 | 188 | 333 |  |" in lines
    assert "| most of a core, 10^9 | 100 | 100 | 100 |" in lines
    # 1,000 steps of 10 ns in 50 groups.
    assert "| full ticks | 12.5 %; 50; 0 us |  |  |" in lines


@pytest.mark.parametrize(
    ("option", "value", "words"),
    [
        ("--measure", "fast", "invalid choice: 'fast'"),
        ("--workload", "208", "invalid choice: '208'"),
        ("--lanes", "0", "lanes is 0; it must be a multiple of 64"),
        ("--lanes", "100", "lanes is 100; it must be a multiple of 64"),
    ],
)
def test_what_cannot_be_measured_is_refused(option, value, words, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["rollout_profile", option, value])
    with pytest.raises(SystemExit) as stop:
        rollout_profile.main()
    assert stop.value.code == 2
    assert words in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.nightly
def test_the_parts_play_what_a_rollout_plays():
    sizes = Sizes(128, 64, 8)
    found = wave(Parts(sizes))
    options = jaxsim.RolloutOptions(lanes=128, chunk=64, devices=1)
    whole = jaxsim.rollout(*jaxsim.make("CartPole3D-v0"), agents.get("pd"), 128, options=options)
    assert found.steps == whole.length.sum()
    assert 0.3 < found.at_work <= 1
    assert found.rounds >= 26
    assert found.seconds["free ticks"] > 0
    # A group moves some of its lanes, and no more steps than its passes.
    for place, (name, moved) in enumerate(found.moved.items(), start=1):
        most = 2 * sizes.packing.repeats * group_size(sizes, place, len(found.moved))
        assert found.groups[name] <= max(moved, 1)
        assert moved <= most * found.groups[name]


def test_rows_that_agree_are_shared():
    shared = shared_rows([(1.0, 2), (1.0, 3)])
    np.testing.assert_array_equal(shared[0], 1.0)
    assert shared[0].shape == () and shared[1].tolist() == [2, 3]
