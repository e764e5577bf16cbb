"""The benchmark of throughput: its arithmetic, its processes and its results."""

import json
from dataclasses import replace
from importlib import resources
from types import SimpleNamespace

import jsonschema
import numpy as np
import pytest

import jaxsim
from evaluation.bench import ours, peers, program, run, single
from evaluation.bench.peers import NOT_FOUND, PeerProgram
from evaluation.bench.process import Process
from evaluation.bench.program import Unavailable, timed
from evaluation.bench.rate import Rate
from evaluation.bench.result import RATIOS, BenchResult, Measurements, Sample, ThroughputCurve
from evaluation.bench.run import Benchmark, quick, sources_of
from evaluation.bench.settings import ProgramSettings
from evaluation.bench.workloads import LIFETIMES, MIX, WORKLOADS

TOY = "tests.evaluation.bench.toy_program"
SINGLES = ("single", "session", "grader", "ta2")


def sample(steps, wall=1.0):
    return Sample(Rate(steps, wall, 2 * wall, 2), load=0.5)


def row(program, workload, flags, *steps, **facts):
    return Measurements(program, workload, flags, facts, [sample(number) for number in steps])


def result(*rows):
    benchmark_result = BenchResult(Benchmark().settings(), cores=2)
    benchmark_result.finish(list(rows))
    return benchmark_result


def check_schema(values):
    """The JSON of a result, as a reader in another language would get it."""
    strict = json.loads(json.dumps(values, allow_nan=False))
    shipped = resources.files("evaluation.bench") / "result.schema.json"
    schema = json.loads(shipped.read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.Draft202012Validator(schema).validate(strict)
    return strict


# Arithmetic ---------------------------------------------------------------------------------------


def test_rate():
    rate = Rate(steps=600, wall_seconds=3.0, cpu_seconds=6.0, processes=2)
    assert (rate.steps_per_wall_second, rate.steps_per_cpu_second) == (200, 100)
    assert Rate(**rate.to_json()) == rate


def test_throughputs_of_processes_side_by_side_add_up():
    """Also if one was timed for longer than another."""
    both = Rate.together([Rate(100, 1.0, 0.5), Rate(900, 3.0, 1.5)])
    assert both.steps_per_wall_second == pytest.approx(100 + 300)
    assert both.steps_per_cpu_second == 500
    assert (both.steps, both.processes) == (1000, 2)


def test_work_is_repeated_for_as_long_as_asked(monkeypatch):
    assert timed(lambda: 7, seconds=0.0).steps == 7
    clock = SimpleNamespace(now=5.0)

    def work():
        clock.now += 0.5
        return 7

    monkeypatch.setattr(program.time, "perf_counter", lambda: clock.now)
    rate = timed(work, seconds=1.2)
    assert (rate.steps, rate.wall_seconds) == (21, 1.5)


def test_a_ratio_is_the_median_of_the_ratios_of_each_round():
    ours = row("jaxsim", "200", "default", 100, 400, 900)
    other = row("pybullet", "200", None, 10, 10, 300)
    assert result(ours, other).ratio("pybullet", "default") == (10, None)


def test_ratios_with_flags_compare_ours_with_the_same_flags():
    outcome = result(
        row("jaxsim", "200", "default", 100),
        row("jaxsim", "200", "configured", 300),
        row("jaxsim", MIX, "default", 50),
        row("jaxsim", MIX, "configured", 60),
    )
    assert outcome.ratio("mix", "default")[0] == 0.5
    assert outcome.ratio("mix", "configured")[0] == 0.2


def test_one_episode_at_a_time_is_compared_with_one_process():
    ours = row("jaxsim", "single", "default", 100, 200)
    beside = row("pybullet", "200", None, 100, 100)
    assert result(ours, beside).ratio("single", "default") == (3.0, None)


def test_pictures_are_compared_by_processor_time():
    """A batch of ours may take several cores, and a renderer one."""
    ours = Measurements("jaxsim", "camera", "default", {}, [Sample(Rate(100, 1.0, 2.0), 0.5)])
    beside = Measurements("mujoco_renderer", "camera", None, {}, [Sample(Rate(10, 1.0, 1.0), 0.5)])
    assert result(ours, beside).ratio("camera", "default") == (5.0, None)


def test_the_camera_is_measured_beside_mujoco():
    pytest.importorskip("mujoco", reason="needs the extra: jaxsim-novelty[bench]")
    benchmark = Benchmark(workloads=("camera",), peers=("mujoco_renderer",), rounds=1, seconds=0.2)
    measured = run.run(benchmark)
    ours, beside = measured.rows
    assert ours.facts == {"pixels": 64, "lanes": 64} and ours.samples[0].rate.steps % 64 == 0
    if beside.missing:  # neither OSMesa nor EGL
        assert "MuJoCo cannot draw with" in beside.missing
    else:
        rates = [row.samples[0].rate for row in (ours, beside)]
        expected = rates[0].steps_per_cpu_second / rates[1].steps_per_cpu_second
        assert measured.ratio("camera", "default") == (expected, None)
    check_schema(measured.to_json())


@pytest.mark.parametrize("workload", SINGLES)
def test_episodes_one_at_a_time_are_measured(workload, monkeypatch):
    pytest.importorskip("gymnasium", reason="needs the extra: jaxsim-novelty[gymnasium]")
    monkeypatch.setattr(single, "WARM", 3)
    monkeypatch.setattr(single, "TRIAL", 2)
    program = single.Singles(ProgramSettings(configured=False, episodes=1))
    assert 100 < program.prepare(workload)["mean_length"] <= (400 if workload == "ta2" else 200)
    rate = program.measure(workload, 0.05)
    assert rate.steps > 100 and rate.processes == 1


@pytest.mark.parametrize(
    ("rows", "name", "words"),
    [
        ([], "pybullet", "jaxsim 200 was not measured: it was not asked for"),
        ([row("jaxsim", "200", "default", 1)], "mujoco", "mujoco 200 was not measured: it was not"),
        (
            [
                row("jaxsim", "200", "default", 1),
                Measurements("mujoco", "200", None, {}, missing="it is not installed"),
            ],
            "mujoco",
            "mujoco 200 was not measured: it is not installed",
        ),
        (
            [
                row("jaxsim", "200", "default", 1, threads=1),
                row("jaxsim", "200_one_thread", "default", 1, threads=1),
            ],
            "threads",
            "there is only one thread",
        ),
    ],
)
def test_a_ratio_that_cannot_be_had_has_a_reason(rows, name, words):
    ratio, reason = result(*rows).ratio(name, "default")
    assert ratio is None
    assert words in reason


def test_compiling_is_what_the_first_call_took_longer():
    entry = row("jaxsim", "200", "default", 100, 200, 300, first_seconds=7.0, first_steps=400)
    assert entry.compile_seconds == 5.0
    assert row("pybullet", "200", None, 100).compile_seconds is None
    assert row("jaxsim", "200", "default", first_seconds=7.0).compile_seconds is None


def test_breaking_even_takes_as_many_episodes_as_the_start_cost():
    """An episode of 200 steps takes 2 s at our 100 steps a second, and 4 s at the peer's 50."""
    facts = {"first_steps": 400, "mean_length": 200}  # the first result holds 4 s of play
    values = result(row("jaxsim", "200", "default", 100, **facts), row("pybullet", "200", None, 50))
    assert values.break_even({"default": 13.0}) == {"default": 5}
    assert values.break_even({"default": 3.9}) == {"default": 0}
    slower = result(row("jaxsim", "200", "default", 40, **facts), row("pybullet", "200", None, 50))
    assert slower.break_even({"default": 13.0}) == {}


def test_json_of_a_result_with_gaps_follows_the_schema():
    values = check_schema(
        result(
            row("jaxsim", "200", "default", 100, 200),
            Measurements("mujoco", "200", None, {}, missing="it is not installed"),
        ).to_json()
    )
    assert values["ratios"] == dict.fromkeys(RATIOS)
    assert set(values["missing"]["default"]) == set(RATIOS)
    assert values["rows"][1]["steps_per_wall_second"] is None
    assert values["rows"][1]["missing"] == "it is not installed"


@pytest.mark.parametrize("key", ["ratios", "missing", "rows", "versions"])
def test_the_schema_refuses_a_result_without_its_parts(key):
    values = result().to_json()
    del values[key]
    with pytest.raises(jsonschema.ValidationError, match=key):
        check_schema(values)


def test_the_mix_holds_every_cell_once():
    cells = WORKLOADS[MIX].cells
    assert len(set(cells)) == len(cells) == 24
    assert {level for level, _ in cells} == set(range(200, 208))


# Processes ----------------------------------------------------------------------------------------


@pytest.fixture
def process():
    process = Process(TOY, ["2"])
    yield process
    process.close()


def test_a_process_answers_whatever_is_printed_in_it(process):
    assert process.prepare("200")["threads"] == 2
    assert process.measure("200", 0.1) == Rate(20, 1.0, 2.0, 2)


def test_a_process_says_what_is_wrong(process):
    with pytest.raises(Unavailable, match="it is not installed"):
        process.prepare("absent")
    with pytest.raises(ValueError, match="chunk is 3; it must be even"):
        process.prepare("refused")
    with pytest.raises(ValueError, match=r"exit code 1: RuntimeError: the engine is on fire"):
        process.prepare("broken")
    with pytest.raises(ValueError, match="ended with exit code 1"):
        process.prepare("200")


@pytest.fixture
def toys(monkeypatch):
    """All programs are toys; one of them is no file of the repository."""
    monkeypatch.setattr(run, "PROGRAMS", dict.fromkeys(run.PROGRAMS, TOY))
    toy_peers = {
        "pybullet": PeerProgram(TOY, ("200", "208_hard"), ""),
        "mujoco": PeerProgram("tests.evaluation.bench.nowhere", ("200",), ""),
        "gymnax": PeerProgram(TOY, ("absent",), ""),
    }
    monkeypatch.setattr(peers, "PEERS", toy_peers)
    return tuple(toy_peers)


@pytest.fixture
def small(toys):
    """A benchmark of the toys."""
    workloads = ("200", "200_one_thread", "mix", "208_hard", "run", "run_rollout")
    return Benchmark(workloads=workloads, peers=toys, rounds=2, seconds=0.1, curve=(64, 256))


def test_a_run(small):
    moves = []
    outcome = run.run(small, lambda *progress: moves.append(progress))
    values = check_schema(outcome.to_json())
    assert values["ratios"] == {
        "pybullet": 400,
        "mujoco": None,
        "mix": 0.5,
        "208_hard": 200,
        "run": 0.75,
        "threads": 1.6,
        "single": None,
        "session": None,
        "grader": None,
        "ta2": None,
        "camera": None,
    }
    assert values["ratios_configured"] == {
        "pybullet": 1600,
        "mujoco": None,
        "mix": 0.5,
        "208_hard": 800,
        "run": 0.75,
        "threads": 1.6,
        "single": None,
        "session": None,
        "grader": None,
        "ta2": None,
        "camera": None,
    }
    for flags in ("default", "configured"):
        assert values["missing"][flags] == {
            "mujoco": f"mujoco 200 was not measured: {NOT_FOUND}",
            **{
                n: f"jaxsim {n} was not measured: it was not asked for"
                for n in (*SINGLES, "camera")
            },
        }
        assert values["first_result_seconds"][flags] > 0
        assert values["first_result_cached_seconds"][flags] > 0
    for episodes in (
        values["break_even_episodes"]["cold"],
        values["break_even_episodes"]["cached"],
    ):
        assert set(episodes) == {"default", "configured"}
    assert [len(row["samples"]) for row in values["rows"]] == [2] * 14 + [0, 0]
    assert values["rows"][0]["compile_seconds"] == 9
    assert values["rows"][-1]["missing"] == "it is not installed"
    assert outcome.curves == [
        ThroughputCurve("default", [(64, 8_064), (256, 8_256)]),
        ThroughputCurve("configured", [(64, 32_064), (256, 32_256)]),
    ]


def test_a_workload_that_cannot_be_played_is_left_out_alone(small, monkeypatch):
    class WithoutExamples(Process):
        def prepare(self, workload):
            if workload.startswith("run"):
                raise Unavailable(f"{workload} is an example")
            return super().prepare(workload)

    monkeypatch.setattr(run, "Process", WithoutExamples)
    values = run.run(replace(small, flags=("default",))).to_json()
    assert values["missing"]["default"]["run"] == ("jaxsim run was not measured: run is an example")
    assert values["ratios"]["pybullet"] == 400 and values["ratios"]["mix"] == 0.5
    assert [curve["flags"] for curve in values["curves"]] == ["default"]


def test_a_program_that_is_not_there_has_no_curve(monkeypatch):
    monkeypatch.setattr(run, "PROGRAMS", {"rollout": "tests.evaluation.bench.nowhere"})
    outcome = run.run(Benchmark(("mix",), peers=(), flags=("default",), curve=(64,)))
    assert [row.missing for row in outcome.rows] == [NOT_FOUND]
    assert outcome.curves == []


def test_what_is_compared_is_measured_side_by_side(small):
    moves = []
    run.run(small, lambda *progress: moves.append(progress))
    rounds = [what for what, _, _ in moves if "round 1" in what]
    assert rounds[:3] == [
        "jaxsim 200 default, round 1 of 2",
        "jaxsim 200 configured, round 1 of 2",
        "pybullet 200, round 1 of 2",
    ]
    done, totals = [done for _, done, _ in moves], {total for _, _, total in moves}
    assert done == list(range(len(done)))
    assert len(totals) == 1
    assert done[-1] < totals.pop()


def test_a_run_leaves_no_process(small, monkeypatch):
    started = []

    class Watched(Process):
        def __init__(self, *arguments):
            super().__init__(*arguments)
            started.append(self.process)

    monkeypatch.setattr(run, "Process", Watched)
    monkeypatch.setattr(run, "PROGRAMS", dict.fromkeys(run.PROGRAMS, TOY))
    run.run(small)
    assert len(started) == 6  # two are started again, to time them with what they compiled
    assert all(process.poll() is not None for process in started)


# Settings -----------------------------------------------------------------------------------------


def test_quick_measures_what_the_ratios_need():
    benchmark = quick(rounds=1)
    needed = {ratio.of for ratio in RATIOS.values()}
    assert needed <= set(benchmark.workloads)
    assert benchmark.rounds == 1
    assert benchmark.episodes < Benchmark().episodes


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"workloads": ("mixed",)}, "unknown workload 'mixed'; did you mean 'mix'"),
        ({"peers": ("pybulet",)}, "unknown peer 'pybulet'; did you mean 'pybullet'"),
        ({"flags": ("fast",)}, "unknown flags 'fast'"),
        (
            {"flags": ("configured",), "workloads": ("single", "camera")},
            "single, camera: flags make a difference for batches of episodes alone; add 'default'",
        ),
        ({"episodes": 0}, "episodes is 0; it must be from 1"),
        ({"rounds": 0}, "rounds is 0; it must be from 1 to 1000"),
        ({"seconds": 0.0}, "seconds is 0.0; it must be above 0"),
        ({"seconds": float("nan")}, "seconds is nan; it must be above 0"),
        ({"seed": -1}, "seed is -1; it must be from 0"),
        ({"agent": "pdd"}, "unknown agent 'pdd'; did you mean 'pd'"),
        ({"agent": "none.py"}, "there is no file none.py"),
        ({"threads": 0}, "threads is 0; it must be from 1 to 256"),
    ],
)
def test_bad_settings(changes, words):
    with pytest.raises(ValueError, match=words):
        Benchmark(**changes).check()


def test_another_agent_plays_the_batches(tmp_path, monkeypatch):
    file = tmp_path / "mine.py"
    file.write_text("from jaxsim import agents\nmine = agents.get('greedy')\n")
    names = []

    def rollout(env, params, agent, episodes, **options):
        names.append(agent.name)
        return SimpleNamespace(length=np.ones(episodes))

    monkeypatch.setattr(jaxsim, "rollout", rollout)
    for name in ("pd", str(file)):
        (source,) = sources_of(
            Benchmark(workloads=("200",), peers=(), flags=("default",), agent=name)
        )
        settings = ProgramSettings.loads(source.arguments[0])
        assert ours.player(ours.WORKLOADS["200"], 3, settings)() == (3, 3)
    assert names == ["pd", "greedy"]


@pytest.mark.parametrize(("setting", "expected"), [(64, 64), (65_536, 8192)])
def test_a_call_of_a_slow_workload_is_short(setting, expected, monkeypatch):
    """What is asked for is the most; a level whose steps take long has a limit of its own."""
    calls = []

    def player(workload, episodes, settings):
        calls.append(episodes)
        return lambda: (10 * episodes, episodes)

    monkeypatch.setattr(ours, "player", player)
    program = ours.Ours(ProgramSettings(configured=False, episodes=setting))
    facts = program.prepare("108_hard")
    assert facts["episodes"] == expected
    assert facts["mean_length"] == 10
    assert program.prepare("200")["episodes"] == setting
    assert program.prepare("200@128")["episodes"] == 128
    assert calls == [expected, setting, 128]


@pytest.mark.parametrize("setting", [8, 65_536])
def test_a_run_and_its_rollout_play_the_same_episodes(setting, monkeypatch):
    """Every block of the syllabus has its share of the episodes."""
    calls = []

    def play(schedule, agent, *, lifetimes, **options):
        length = np.ones((lifetimes, schedule.num_episodes))
        return SimpleNamespace(columns={"length": length})

    def rollout(env, table, agent, episodes, *, variant, **options):
        calls.append((table, variant))
        return SimpleNamespace(length=np.ones(episodes))

    monkeypatch.setattr(ours.scanner, "play", play)
    monkeypatch.setattr(jaxsim, "rollout", rollout)
    settings = ProgramSettings(configured=False, episodes=setting, agent="nothing", threads=1)
    program = ours.Ours(settings)
    of_run, of_rollout = (program.prepare(name)["episodes"] for name in ("run", "run_rollout"))
    lifetimes = min(setting, LIFETIMES)
    assert of_run == of_rollout == lifetimes * ours.syllabus(WORKLOADS["run"]).num_episodes
    ((table, variant),) = calls
    assert len(np.unique(variant)) == len(table.pole_length) == 4
    count = np.bincount(variant)
    assert (count % lifetimes == 0).all() and count.sum() == of_run


def test_a_run_plays_the_episodes_of_its_syllabus():
    settings = ProgramSettings(configured=False, episodes=8, agent="nothing", threads=1)
    steps, episodes = ours.player(WORKLOADS["run"], 8, settings)()
    assert episodes == 8 * ours.syllabus(WORKLOADS["run"]).num_episodes <= steps


def test_without_the_examples_there_is_no_syllabus(monkeypatch, tmp_path):
    monkeypatch.setattr(ours, "ROOT", tmp_path)
    with pytest.raises(Unavailable, match=r"cl_pole_length\.json is an example: run .* a clone"):
        ours.Ours(ProgramSettings(configured=False, episodes=8)).prepare("run")
