"""The Gymnasium adapter: Gymnasium's own checks, and loops over the core environment."""

import copy
import pickle
import runpy
import sys
import warnings

import jax
import numpy as np
import pytest

pytest.importorskip("gymnasium", reason="needs the extra: jaxsim-novelty[gymnasium]")

import gymnasium
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode

import jaxsim
from benchmarks import catalogue
from jaxsim.adapters import gymnasium as adapter
from jaxsim.adapters.streams import SingleStream
from jaxsim.worlds import cartpole3d

ENV_ID = "jaxsim/CartPole2D-v0"  # shows what CartPole3D does, and compiles in a tenth of its time
SOLID_ID = "jaxsim/CartPole3D-v0"
LANES = 6
# Episodes of at most nine steps.
SMALL = {"values": {"lean_limit": 0.03, "start/spread": 0.5}, "max_steps": 9}


@pytest.fixture(scope="module")
def single():
    return gymnasium.make(ENV_ID, **SMALL)


@pytest.fixture(scope="module")
def another():
    return gymnasium.make(ENV_ID, **SMALL)


@pytest.fixture(scope="module")
def vectors():
    return {mode: make_vec(mode) for mode in adapter.MODES}


def make_vec(mode, lanes=LANES):
    return gymnasium.make_vec(ENV_ID, num_envs=lanes, autoreset_mode=mode, **SMALL)


def actions_at(t, lanes=LANES):
    return np.random.default_rng([9, t]).integers(0, 3, lanes)


def test_every_environment_is_registered():
    assert {f"jaxsim/{env_id}" for env_id in jaxsim.registered_envs()} <= set(gymnasium.registry)
    before = dict(gymnasium.registry)
    adapter.register()
    assert gymnasium.registry == before


@pytest.mark.parametrize(
    "env_id",
    [
        # Its step is that of CartPole3D, some times over, and takes as long to compile again.
        pytest.param(env_id, marks=[pytest.mark.nightly] * (env_id == "CartPole3DLeans-v0"))
        for env_id in jaxsim.registered_envs()
    ],
)
def test_every_environment_passes_gymnasiums_checks(env_id):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        if env_id != "CartPole3D-v0":  # the others have no bounds on all that they show
            warnings.filterwarnings("ignore", ".*m(ax|in)imum value is -?infinity")
        check_env(gymnasium.make(f"jaxsim/{env_id}", render_mode="rgb_array").unwrapped)


@pytest.mark.long
@pytest.mark.parametrize("kind", ["CartPole2D", "CartPole3D", "many blocks"])
def test_every_level_passes_gymnasiums_checks(kind, monkeypatch):
    """Levels are numbers: those of a kind are played by one environment with the terms of all."""
    made, groups = jaxsim.make, catalogue.groups()
    env_id = "CartPole2D-v0" if kind == "CartPole2D" else "CartPole3D-v0"
    task = jaxsim.spec(env_id).task
    (group,) = (
        group
        for group in groups
        if group.env.name == task
        and getattr(group.env.config, "stacked", False) == (kind == "many blocks")
    )
    monkeypatch.setattr(jaxsim, "make", lambda *a, **o: (group.env, made(*a, **o)[1]))
    levels = {int(name.split()[1]) for name in group.params}
    assert len(levels) == {"CartPole2D": 4, "CartPole3D": 20, "many blocks": 2}[kind]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", ".*m(ax|in)imum value is -?infinity")
        for level in sorted(levels):
            env = gymnasium.make(f"jaxsim/{env_id}", level=level, difficulty="hard").unwrapped
            assert env.core == group.env
            check_env(env)


def test_specs_tell_how_long_episodes_are_and_what_is_solved():
    classic = gymnasium.spec("jaxsim/CartPole-v1")
    assert classic.max_episode_steps == 500
    ours = gymnasium.spec(SOLID_ID)
    assert (ours.max_episode_steps, ours.reward_threshold) == (200, pytest.approx(190 * 191 / 400))
    leans = gymnasium.spec("jaxsim/CartPole3DLeans-v0")
    assert leans.reward_threshold == ours.reward_threshold


def test_a_limit_of_gymnasium_cuts_single_and_vector_environments_alike():
    values = {**SMALL, "values": {**SMALL["values"], "lean_limit": 0.9}}
    env = gymnasium.make(ENV_ID, max_episode_steps=4, **values)
    envs = gymnasium.make_vec(ENV_ID, num_envs=2, max_episode_steps=4, **values)
    env.reset(seed=3)
    envs.reset(seed=3)
    for t in range(1, 5):
        _, reward, *flags, _ = env.step(1)
        _, rewards, terminated, truncated, _ = envs.step([1, 1])
        assert reward == pytest.approx(float(rewards[0])) == pytest.approx(t / 200)
        assert flags == [terminated[0], truncated[0]] == [False, t == 4]
    with pytest.raises(ValueError, match="at least 1"):
        gymnasium.make_vec(ENV_ID, num_envs=2, max_episode_steps=0, **values)


def test_an_option_for_longer_episodes_says_that_gymnasium_cuts_them_off():
    with pytest.warns(UserWarning, match="gymnasium.make ends episodes after 200 steps unless"):
        adapter.JaxsimEnv("CartPole3D-v0", max_steps=300)
    with pytest.warns(UserWarning, match="make_vec ends .* given max_episode_steps=600 too"):
        gymnasium.make_vec("jaxsim/CartPole-v1", num_envs=2, max_steps=600)


def test_episodes_that_are_not_cut_off_have_no_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        # A step of leans is four ticks, and `max_steps` counts ticks.
        adapter.JaxsimEnv("CartPole3DLeans-v0", max_steps=200)
        options = {"num_envs": 2, "max_steps": 600}
        gymnasium.make_vec("jaxsim/CartPole-v1", max_episode_steps=600, **options)
        gymnasium.make_vec("jaxsim/CartPole-v1", max_episode_steps=-1, **options)
        adapter.JaxsimVectorEnv("CartPole-v1", **options)


def test_pictures_of_single_and_vector_environments(tmp_path):
    env = gymnasium.make(ENV_ID, render_mode="rgb_array", **SMALL)
    with pytest.raises(gymnasium.error.ResetNeeded):
        env.unwrapped.render()
    assert env.metadata["render_fps"] == 50
    env.reset(seed=20)
    first = env.render()
    assert first.shape == (240, 480, 3) and first.dtype == np.uint8
    env.step(1)
    assert (env.render() != first).any()
    envs = gymnasium.make_vec(ENV_ID, num_envs=2, render_mode="rgb_array", **SMALL)
    envs.reset(seed=20)
    frames = envs.render()
    np.testing.assert_array_equal(frames[0], first)
    assert len(frames) == 2 and (frames[0] != frames[1]).any()
    assert gymnasium.make(ENV_ID, **SMALL).unwrapped.render() is None


def test_observations_of_pixels():
    options = {"image": {"height": 8, "width": 12}, "max_steps": 3}
    env = gymnasium.make("jaxsim/CartPole-v1", disable_env_checker=True, **options)
    space = env.observation_space
    assert (space.shape, space.dtype) == ((8, 12, 3), np.uint8)
    assert (space.low.max(), space.high.min()) == (0, 255)
    check_env(env.unwrapped)
    first, _ = env.reset(seed=4)
    second, *_ = env.step(0)

    vector = adapter.JaxsimVectorEnv("CartPole-v1", 2, autoreset_mode="SameStep", **options)
    assert vector.observation_space.dtype == np.uint8
    pictures, _ = vector.reset(seed=3)
    np.testing.assert_array_equal(pictures[1], first)
    pictures, *_ = vector.step([1, 0])
    np.testing.assert_array_equal(pictures[1], second)
    *_, info = [vector.step([1, 0]) for _ in range(2)][-1]
    assert info["final_obs"][1].dtype == np.uint8
    assert vector.observation_space.contains(np.stack(info["final_obs"]))
    assert (first != info["final_obs"][1]).any()


def test_episodes_can_be_recorded(tmp_path):
    pytest.importorskip("moviepy", reason="RecordVideo needs moviepy: pip install moviepy")
    env = gymnasium.make(ENV_ID, render_mode="rgb_array", **SMALL)
    env = gymnasium.wrappers.RecordVideo(env, str(tmp_path / "videos"), disable_logger=True)
    env.reset(seed=1)
    over = False
    while not over:
        *_, terminated, truncated, _ = env.step(0)
        over = terminated or truncated
    env.close()
    (video,) = tmp_path.glob("videos/*.mp4")
    assert video.stat().st_size > 1000


def test_same_seed_same_episodes_and_another_seed_others(single, another):
    def play(env, seed):
        observations = [env.reset(seed=seed)[0]]
        for t in range(20):
            observation, _, terminated, truncated, _ = env.step(int(actions_at(t)[0]))
            observations.append(observation)
            if terminated or truncated:
                observations.append(env.reset()[0])
        return np.stack(observations[:20])

    first = play(single, 3)
    np.testing.assert_array_equal(first, play(another, 3))
    assert np.abs(first[0] - play(single, 4)[0]).max() > 0.01
    play(single, 2**70)  # a seed may be of any size


def test_unseeded_environments_differ():
    starts = [adapter.JaxsimEnv("CartPole2D-v0", **SMALL).reset()[0] for _ in range(2)]
    assert np.abs(starts[0] - starts[1]).max() > 0.01


def test_resets_without_a_seed_are_fresh_and_follow_from_the_last_seed(single):
    single.reset(seed=8)
    first = [single.reset()[0][0] for _ in range(5)]
    assert len(set(first)) == 5
    single.reset(seed=8)
    assert [single.reset()[0][0] for _ in range(5)] == first


def test_an_ended_episode_stays_until_reset(single):
    single.reset(seed=0)
    over, steps = False, 0
    while not over:
        last, reward, terminated, truncated, info = single.step(0)
        over, steps = terminated or truncated, steps + 1
    assert reward == pytest.approx(steps / 200) and info["performance"] == pytest.approx(reward)
    again, reward, *flags, _ = single.step(1)
    np.testing.assert_array_equal(again, last)
    assert reward == 0 and flags == [terminated, truncated]
    assert not np.array_equal(single.reset()[0], last)


@pytest.mark.parametrize("action", [3, -1, 1.0, True, "right", [0, 1], None])
def test_bad_actions_are_refused(single, action):
    single.reset(seed=0)
    with pytest.raises(ValueError, match="integer from 0 to 2"):
        single.unwrapped.step(action)


def test_step_before_reset_is_refused():
    with pytest.raises(gymnasium.error.ResetNeeded):
        adapter.JaxsimEnv("CartPole2D-v0", **SMALL).step(0)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"level": 999}, "novelty/level"),
        ({"difficulty": "lethal"}, "easy"),
        ({"colour": "red"}, "unknown option 'colour'"),
        ({"values": {"pole/lenght": 1.0}}, "pole/length"),
        ({"values": {"pole/length": -1.0}}, "pole/length"),
        ({"render_mode": "human"}, "render_mode"),
    ],
)
def test_bad_options_are_refused_before_anything_is_compiled(options, words):
    for build in (adapter.JaxsimEnv, adapter.JaxsimVectorEnv):
        with pytest.raises(ValueError, match=words):
            build("CartPole3D-v0", **options)


def test_levels_and_values_reach_the_physics():
    env = adapter.JaxsimEnv("CartPole3D-v0", {"gravity": 3.0}, level=101)
    assert float(env._play.params.cart_mass) == 10.0
    assert float(env._play.params.gravity) == 3.0
    made = gymnasium.make(SOLID_ID, level=203, difficulty="hard").unwrapped
    assert float(made._play.params.aim_share) == 0.75
    assert made.spec.kwargs["level"] == 203


def test_a_value_changes_the_motion_without_another_program(single):
    values = SMALL["values"] | {"force": 25.0}
    strong = adapter.JaxsimEnv("CartPole2D-v0", **(SMALL | {"values": values}))
    speeds, compiled = [], []
    for env in (single.unwrapped, strong):
        env.reset(seed=1)
        speeds.append(env.step(1)[0][3])
        compiled.append(env._play.stepper._programs.quick._cache_size())
    assert speeds[1] - speeds[0] == pytest.approx(15 * 0.02, rel=0.2)
    assert compiled[1] == compiled[0]


def test_reset_to_a_given_state_or_start(single):
    env = single.unwrapped
    env.reset(seed=1)
    observation, *_ = env.step(2)
    state = env.state
    env.step(1)
    again, _ = env.reset(options={"state": state})
    np.testing.assert_allclose(again, observation, atol=1e-6)
    start = env._play.core.start(jax.random.key(4), env._play.params)
    first, _ = env.reset(options={"start": start})
    _, first_state = env._play.core.restart(jax.random.key(0), start, env._play.params)
    assert first[0] == pytest.approx(float(first_state.reported.x), abs=1e-6)
    assert int(env._play.state.step) == 0
    for options, words in (
        ({"state": {}}, "not a state of this environment; pass one that its attribute state"),
        ({"stat": state}, "unknown reset option 'stat'"),
        ({"state": jax.tree.map(lambda a: np.zeros(3), state)}, r"shape \(3,\)"),
        ({"state": state, "start": start}, "one of the options"),
    ):
        with pytest.raises(ValueError, match=words):
            env.reset(options=options)


def test_a_state_of_other_settings_is_named():
    few, many = (adapter.JaxsimEnv("CartPole3D", level=level) for level in (200, 108))
    with pytest.raises(ValueError, match="or one of an environment with the same task and options"):
        few.reset(options={"state": many._play.blank})


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))])
def test_a_copy_goes_on_from_the_same_state(single, copied):
    assert adapter.JaxsimEnv("CartPole-v1").state is None
    single.reset(seed=4)
    single.step(2)
    other = copied(single)
    assert other is not single
    for action in (1, 0, 2):
        expected, got = single.step(action), other.step(action)
        np.testing.assert_array_equal(got[0], expected[0])
        assert got[1:] == expected[1:]
    single.step(1)
    assert int(other.unwrapped.state.step) == int(single.unwrapped.state.step) - 1


def test_a_given_state_takes_the_sensors_of_the_environment():
    """A state from elsewhere has none; one of the environment itself keeps its own."""
    play = SingleStream("CartPole3D-v0", {"sensors/noise_position": 0.5}, {})
    play.seed(np.array([3, 4], np.uint32))
    clean = cartpole3d.wsu_start(5, dtype="float32")
    read = play.begin_at("state", clean)
    assert abs(read[0] - float(clean.pose.x)) > 1e-3
    np.testing.assert_array_equal(play.begin_at("state", play.state), read)
    play.seed(np.array([5, 6], np.uint32))
    assert play.begin_at("state", clean)[0] != read[0]


@pytest.mark.parametrize("mode", list(adapter.MODES))
def test_vector_declares_its_mode_and_keeps_to_its_spaces(vectors, mode):
    envs = vectors[mode]
    assert envs.metadata["autoreset_mode"] is mode
    observation, info = envs.reset(seed=5)
    assert observation in envs.observation_space and info["_performance"].all()
    for t in range(15):
        observation, reward, terminated, truncated, _ = envs.step(actions_at(t))
        assert observation in envs.observation_space and observation.dtype == np.float32
        assert reward.shape == terminated.shape == truncated.shape == (LANES,)
        assert reward.dtype == np.float64 and terminated.dtype == truncated.dtype == bool


def test_next_step_lanes_equal_single_environments(vectors, single):
    envs, lane = vectors[AutoresetMode.NEXT_STEP], 2
    batch = [envs.reset(seed=20)[0][lane]]
    alone, over = [single.reset(seed=20 + lane)[0]], False
    ends = 0
    for t in range(30):
        observation, reward, terminated, truncated, info = envs.step(actions_at(t))
        batch.append(observation[lane])
        if over:
            observation, _ = single.reset()
            want, over = (0.0, False, False), False
        else:
            observation, *want, _ = single.step(int(actions_at(t)[lane]))
            over = want[1] or want[2]
            ends += over
        alone.append(observation)
        got = (reward[lane], bool(terminated[lane]), bool(truncated[lane]))
        assert got == (pytest.approx(want[0], abs=1e-6), *want[1:])
        assert info["performance"][lane] == pytest.approx(want[0], abs=1e-6)
    np.testing.assert_allclose(batch, alone, atol=1e-5)
    assert ends >= 2


def test_same_step_returns_the_next_episode_and_keeps_the_last_observation(vectors):
    envs = {mode: vectors[mode] for mode in adapter.MODES}
    now = {mode: env.reset(seed=31)[0] for mode, env in envs.items()}
    np.testing.assert_array_equal(*now.values())
    going = np.ones(LANES, bool)  # lanes whose first episode is not over: both modes agree
    for t in range(10):
        after, _, term, trunc, _ = envs[AutoresetMode.NEXT_STEP].step(actions_at(t))
        obs, reward, *flags, info = envs[AutoresetMode.SAME_STEP].step(actions_at(t))
        over = flags[0] | flags[1]
        np.testing.assert_array_equal(flags[0][going], term[going])
        np.testing.assert_array_equal(flags[1][going], trunc[going])
        np.testing.assert_array_equal(info.get("_final_obs", np.zeros(LANES, bool)), over)
        for lane in np.flatnonzero(over & going):
            np.testing.assert_allclose(info["final_obs"][lane], after[lane], atol=1e-5)
            assert info["final_info"]["performance"][lane] == pytest.approx(reward[lane])
            assert not np.allclose(obs[lane], after[lane])
        assert (info["performance"][over] == 0).all()
        np.testing.assert_allclose(info["performance"][~over], reward[~over])
        np.testing.assert_allclose(obs[going & ~over], after[going & ~over], atol=1e-5)
        going &= ~over
    assert not going.any()


def test_same_layout_of_info_as_gymnasiums_own_vector_environment(vectors):
    theirs = gymnasium.make_vec(
        ENV_ID,
        num_envs=LANES,
        vectorization_mode="sync",
        vector_kwargs={"autoreset_mode": AutoresetMode.SAME_STEP},
        **SMALL,
    )
    ours = vectors[AutoresetMode.SAME_STEP]
    assert set(theirs.reset(seed=31)[1]) == set(ours.reset(seed=31)[1])
    assert theirs.observation_space == ours.observation_space
    assert theirs.action_space == ours.action_space
    keys = set()
    for t in range(10):
        _, _, _, truncated, want = theirs.step(actions_at(t))
        _, _, _, cut, got = ours.step(actions_at(t))
        np.testing.assert_array_equal(truncated, cut)
        keys |= set(want)
        assert not set(want) ^ set(got)
        if "final_info" in want:
            assert set(want["final_info"]) == set(got["final_info"])
            break
    assert "final_obs" in keys


def test_vector_seeds(vectors):
    envs = vectors[AutoresetMode.NEXT_STEP]
    first = envs.reset(seed=40)[0]
    np.testing.assert_array_equal(first, envs.reset(seed=list(range(40, 40 + LANES)))[0])
    np.testing.assert_array_equal(first[1:], envs.reset(seed=41)[0][:-1])
    assert np.unique(first[:, 0]).size == LANES
    assert not np.array_equal(envs.reset()[0], envs.reset()[0])
    some = [None if lane == 2 else 40 + lane for lane in range(LANES)]
    one, two = envs.reset(seed=some)[0], envs.reset(seed=some)[0]
    np.testing.assert_array_equal((one == first).all(axis=1), np.arange(LANES) != 2)
    assert (one[2] != two[2]).any()
    with pytest.raises(ValueError, match="2 seeds were given for 6"):
        envs.reset(seed=[1, 2])
    for seed in (1.5, "a", [-1] * LANES, [*range(LANES - 1), 2.5]):
        with pytest.raises(ValueError, match=r"seed is .*; it must be"):
            envs.reset(seed=seed)
    with pytest.raises(ValueError, match="unknown reset option"):
        envs.reset(options={"stat": None})


def test_vector_reset_to_given_states_or_starts(vectors, single):
    envs, env = vectors[AutoresetMode.NEXT_STEP], single.unwrapped
    assert (envs.core, env.core) == (envs._play.core, envs.core) and envs.params is not None
    starts = envs.core.start(jax.random.split(jax.random.key(4), LANES), envs.params)
    states = None
    for name in ("start", "state"):
        given = starts if name == "start" else states
        observation, _ = envs.reset(seed=0, options={name: given})
        for lane in range(LANES):
            one = jax.tree.map(lambda leaf, lane=lane: leaf[lane], given)
            want, _ = env.reset(seed=lane, options={name: one})
            np.testing.assert_allclose(observation[lane], want, atol=1e-6)
        states = envs.state
    with pytest.raises(ValueError, match="is not a state of this environment"):
        envs.reset(options={"state": None})


@pytest.mark.parametrize("bad", [np.full(LANES, 3), np.zeros(LANES), np.zeros(LANES + 1, int), 0])
def test_bad_vector_actions_are_refused(vectors, bad):
    envs = vectors[AutoresetMode.NEXT_STEP]
    envs.reset(seed=1)
    with pytest.raises(ValueError, match="integer from 0 to 2"):
        envs.step(bad)


@pytest.mark.parametrize("mode", [AutoresetMode.DISABLED, "sometimes", None])
def test_unknown_autoreset_modes_are_refused(mode):
    with pytest.raises(ValueError, match="'NextStep', 'SameStep'"):
        adapter.JaxsimVectorEnv("CartPole3D-v0", 2, autoreset_mode=mode)


def test_gymnasiums_vector_wrappers_count_episodes():
    envs = gymnasium.wrappers.vector.RecordEpisodeStatistics(make_vec("NextStep"))
    envs.reset(seed=3)
    lengths = []
    for t in range(25):
        *_, info = envs.step(actions_at(t))
        if "episode" in info:
            lengths += info["episode"]["l"][info["_episode"]].tolist()
    assert len(lengths) >= LANES and min(lengths) >= 1 and max(lengths) == 9


def test_without_gymnasium_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "gymnasium", None)
    with pytest.raises(ImportError, match=r"jaxsim-novelty\[gymnasium\]"):
        runpy.run_path(adapter.__file__)
