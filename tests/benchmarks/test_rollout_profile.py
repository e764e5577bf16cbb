"""The page on where a rollout's time goes."""

import pytest

import jaxsim
from benchmarks import rollout_profile
from benchmarks.rollout_profile import PARTS, Parts, Profile, group_size, take_apart
from jaxsim import agents
from tools import profile_page


def test_the_page_has_every_part_and_how_near_the_limit_is():
    packed = ({"full ticks": 50}, {"full ticks": 0.125})
    slow = Profile(dict.fromkeys(PARTS, 10.0), *packed, 1000, 0.8, 30, 1500.0, 2500.0, 100e9)
    fast = slow._replace(nanoseconds=dict.fromkeys(PARTS, 5.0), groups={}, at_work=0.9)
    profiles = {"default": slow.to_json(), "configured": fast.to_json()}
    makers = (profile_page.parts, profile_page.limits, profile_page.packed)
    lines = [line for make in makers for line in make(profiles)]
    assert "| ns of a step | default | configured |" in lines
    assert all(f"| {part} | 10.0 | 5.0 |" in lines for part in PARTS)
    assert "| **all** | **50.0** | **25.0** |" in lines
    assert "| lanes at work | 80 % | 90 % |" in lines
    # 1,500 operations for 0.8 and 0.9 steps at 100 a nanosecond take 18.75 ns and 16.7 ns.
    assert "| all, with free ticks at their limit | 58.8 | 36.7 |" in lines
    # 1,500 operations in 10 ns of a step, of whose lanes 0.8 are at work.
    assert "| operations a second in free ticks, 10^9 | 188 | 333 |" in lines
    assert "| most of a core, 10^9 | 100 | 100 |" in lines
    # 1,000 steps of 10 ns in 50 groups.
    assert "| full ticks | 12.5 %; 50; 0 us |  |" in lines


@pytest.mark.parametrize(
    ("option", "value", "words"),
    [
        ("--measure", "fast", "invalid choice: 'fast'"),
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
    parts = Parts(128)
    result = take_apart(parts)
    spread = jaxsim.Spread(threads=1)
    whole = jaxsim.rollout(*jaxsim.make("CartPole3D-v0"), agents.get("pd"), 128, spread=spread)
    assert result.steps == whole.length.sum()
    assert 0.3 < result.at_work <= 1
    assert result.passes >= 200 / parts.sizes.ticks
    assert result.seconds["free ticks"] > 0
    # A group takes each of its lanes one step on.
    for place, (name, moved) in enumerate(result.moved.items(), start=1):
        most = group_size(parts.sizes, place, len(result.moved))
        assert result.groups[name] <= max(moved, 1)
        assert moved <= most * result.groups[name]
