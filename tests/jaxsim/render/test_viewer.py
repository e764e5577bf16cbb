"""The viewer's page holds an episode, is small, and asks for nothing from elsewhere."""

import base64
import json
import re
import zlib
from dataclasses import replace

import jax
import numpy as np
import pytest

import jaxsim
from jaxsim.render import viewer
from jaxsim.render.scene import Scene
from jaxsim.render.viewer.contacts import CONTACTS, contacts
from jaxsim.render.viewer.film import MOST_TICKS, Film, Predictions
from jaxsim.worlds.cartpole2d import sensors
from jaxsim.worlds.cartpole3d.types import ACTIONS, Vector

TICKS = 200


@pytest.fixture(scope="module")
def flood():
    """Places of an episode that fills with as many blocks as any, one more each tick."""
    draws, number = np.random.default_rng(0), 205
    place = draws.uniform((-4, -4, 1), (4, 4, 9), (number, 3))
    speed = draws.uniform(3, 5, (number, 3)) * draws.choice((-1, 1), (number, 3))
    path = []
    for _ in range(TICKS + 1):
        path.append(place)
        place = place + 0.02 * speed
        off = place - [0, 0, 5]
        speed = np.where(abs(off) > 4.45, -abs(speed) * np.sign(off), speed)
    ticks = np.arange(TICKS + 1)
    zero = np.zeros(TICKS + 1)
    tilt = 0.1 * np.sin(ticks / 20)
    return Scene(
        cart=Vector(np.sin(ticks / 30), np.cos(ticks / 30), zero),
        lean=Vector(np.sin(tilt), zero, np.cos(tilt)),
        blocks=Vector(*np.moveaxis(np.array(path), -1, 0)),
        alive=np.arange(number) <= ticks[:, None] + 4,
    )


def film(places, **fields):
    defaults = {"title": "a title", "action": [1] * TICKS, "reward": np.arange(TICKS) / 7}
    return viewer.Film(places=places, names=ACTIONS, **(defaults | fields))


def data_of(page):
    return json.loads(re.search(r'id="data">(.*?)</script>', page, re.S)[1])


def unpacked(values):
    words = np.frombuffer(zlib.decompress(base64.b64decode(values["data"])), "<i2")
    return np.cumsum(words.reshape(-1, values["ticks"] + 1), axis=1, dtype=np.int16)


def test_an_episode_full_of_blocks_is_a_small_page(flood):
    page = viewer.page([film(flood)])
    assert len(page.encode()) < 300_000
    values = data_of(page)[0]
    assert values["ticks"] == TICKS and values["slots"] == 205


def test_places_come_back_to_a_millimetre(flood):
    table = unpacked(film(flood).to_json())
    np.testing.assert_allclose(table[0] / 1000, flood.cart.x, atol=6e-4)
    np.testing.assert_array_equal(table[5::4].T.astype(bool), flood.alive)
    np.testing.assert_allclose(table[8::4].T / 1000, flood.blocks.z, atol=6e-4)


def test_the_page_loads_nothing_and_texts_cannot_break_out(flood):
    evil = "</script><script>alert(1)</script>"
    page = viewer.page([film(flood, title=evil, facts=evil)])
    assert page.count("<script") == 2 and "alert(1)<" not in page
    assert data_of(page)[0]["title"] == evil
    assert "default-src 'none'" in page
    assert not re.search(r"""(?:src|href)=|https?://|@import|url\(""", page)


def test_what_was_said_is_in_the_page(flood):
    predictions = viewer.Predictions([0, 3] * 100, [0.25, 0.75] * 100, [0.5] * TICKS)
    values = film(flood, predictions=predictions, novel=True, truth="novel, level 8").to_json()
    assert values["level"][:2] == [0, 3] and values["probability"][:2] == [0.25, 0.75]
    assert (values["novel"], values["truth"]) == (True, "novel, level 8")
    assert "probability" not in film(flood).to_json()


def test_a_notebook_shows_it_in_a_frame(flood):
    shown = viewer.Viewer([film(flood)], "one")._repr_html_()
    assert shown.startswith("<iframe srcdoc=") and 'sandbox="allow-scripts"' in shown


@pytest.mark.parametrize("number", [0, 9])
def test_too_few_or_too_many_films_are_refused(number):
    with pytest.raises(ValueError, match=f"{number} films were given; a page shows from 1 to 8"):
        viewer.page([None] * number)


def touching(cart=(0.0, 0.0, 0.0), lean=(0.0, 0.0, 1.0), blocks=((9.0, 9.0, 5.0),), alive=None):
    cart, lean = np.array([cart]), np.array(lean)
    foot = cart + [0, 0, 0.2] + 0.05 * lean
    alive = np.ones((1, len(blocks)), bool) if alive is None else np.array([alive])
    sizes = {"radius": 0.5, "half_width": 20.0, "floor": -0.05, "ceiling": 9.95}
    bits = contacts(cart, foot, foot + lean, np.array([blocks]), alive, **sizes)[0]
    return {name for i, name in enumerate(CONTACTS) if bits >> i & 1}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, set()),
        ({"blocks": ((0.99, 0.0, 0.46),)}, {"block and cart"}),
        ({"blocks": ((1.03, 0.0, 0.46),)}, set()),
        ({"blocks": ((0.0, 0.5, 1.2),)}, {"block and pole"}),
        ({"blocks": ((0.0, 0.6, 1.2),)}, set()),
        ({"cart": (19.5, 0.0, 0.0)}, {"cart and wall"}),
        ({"blocks": ((3.0, 3.0, 0.44),)}, {"block and wall"}),
        ({"blocks": ((3.0, 3.0, 5.0), (3.9, 3.0, 5.0))}, {"blocks"}),
        ({"blocks": ((3.0, 3.0, 5.0), (3.9, 3.0, 5.0)), "alive": [True, False]}, set()),
    ],
)
def test_contacts_are_those_of_the_places(given, expected):
    assert touching(**given) == expected


@pytest.mark.parametrize("env_id", ["CartPole2D-v0", "CartPole-v1", "CartPole3DLeans-v0"])
def test_other_worlds_are_filmed_too(env_id):
    env, params = jaxsim.make(env_id)
    states = jax.jit(env.start)(jax.random.split(jax.random.key(0), 3), params)
    made = viewer.film(env, params, states, title="x", action=[0, 1], reward=[1.0, 2.0])
    assert len(data_of(viewer.page([made]))[0]["names"]) == env.num_actions
    with pytest.raises(
        ValueError, match=r"of 3 states needs 2 actions and rewards, .* are 1 and 2"
    ):
        viewer.film(env, params, states, title="x", action=[0], reward=[1.0, 2.0])


def test_a_page_reads_every_field_of_a_film():
    """All numbers and words differ; probabilities and rewards have four digits."""
    scene = Scene(
        Vector(*np.array([[0.1, 0.2], [0.3, 0.4], [0, 0]])),
        Vector(*np.array([[0.0, 0.0], [0.0, 0.0], [1, 1.0]])),
        Vector(*np.full((3, 2, 3), 3.0)),
        np.ones((2, 3), bool),
        pole_length=1.5,
        block_radius=0.4,
        half_width=4.5,
        floor=-0.25,
        ceiling=8.5,
    )
    predictions = Predictions([7], [0.123456], [0.654321])
    shown = Film(
        "title", scene, [2], [0.987654], ["a", "b", "c"], 0.0312345678, "facts", "note",
        predictions, True, "truth",
    )  # fmt: skip
    values = shown.to_json()
    del values["data"], values["contact"], values["contacts"]
    assert values == {
        "title": "title",
        "facts": "facts",
        "note": "note",
        "ticks": 1,
        "slots": 3,
        "dt": 0.031235,
        "pole": 1.5,
        "radius": 0.4,
        "half": 4.5,
        "floor": -0.25,
        "ceiling": 8.5,
        "names": ["a", "b", "c"],
        "action": [2],
        "reward": [0.9877],
        "novel": True,
        "truth": "truth",
        "level": [7],
        "probability": [0.1235],
        "threshold": [0.6543],
    }
    plain = Film("title", scene, [2], [0.5], ["a"])
    assert (plain.dt, plain.facts, plain.note, plain.novel) == (0.02, "", "", False)
    assert plain.truth == "not told" and "level" not in plain.to_json()
    assert MOST_TICKS == 20_000


@pytest.mark.parametrize("level", [50, 53])
def test_films_of_two_dimensions_show_the_true_places_and_no_blocks_or_walls(level):
    """The sensors of level 53 report bins, and those of all levels report three blocks."""
    env, params = jaxsim.make("CartPole2D-v0", level=level)
    keys = jax.random.split(jax.random.key(0), TICKS + 1)
    states = jax.jit(env.start)(keys, params)
    x = np.linspace(-2.5, 2.5, TICKS + 1, dtype=np.float32)
    motion = replace(states.motion, x=x, angle=x / 9)
    states = replace(states, motion=motion, reported=sensors.report(params, motion))
    made = viewer.film(env, params, states, title="x", action=[0] * TICKS, reward=[0.0] * TICKS)
    np.testing.assert_array_equal(made.places.cart.x, x)
    np.testing.assert_allclose(made.places.lean.x, np.sin(x / 9), atol=1e-6)
    assert not made.places.alive.any()
    assert not made.touches.any()
    assert replace(made, walls=True).touches.any()
