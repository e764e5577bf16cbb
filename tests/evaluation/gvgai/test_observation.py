"""What an agent sees: the fields of the framework over CartPole, and nothing to look ahead with."""

import json
import struct
import zlib
from dataclasses import replace

import numpy as np
import pytest

from evaluation.clock import ScriptedClock
from evaluation.gvgai import observation
from evaluation.gvgai.observation import (
    ACTIONS,
    DOWN,
    FIELDS,
    FORMS,
    LEFT,
    NIL,
    OBJECT_FIELDS,
    RIGHT,
    UP,
    USE,
    SerializableStateObservation,
    View,
    push,
    serialise,
)
from evaluation.gvgai.picture import SIDE, draw
from evaluation.gvgai.trial import TrackLifetime
from jaxsim import render
from jaxsim.worlds.cartpole3d.types import ACTIONS as PUSHES
from jaxsim.worlds.cartpole3d.types import Observation, Vector
from tests.evaluation.gvgai.scripted import track


def vector(x=0.0, y=0.0, z=0.0):
    return Vector(*np.float32([x, y, z]))


def view(half_width=4.95, **changes):
    """A room with the pole leaning to the right and two blocks in four slots."""
    half = 0.1
    readings = Observation(
        cart_position=vector(1.0, -2.0),
        cart_velocity=vector(3.0, 4.0),
        pole_quaternion=(0.0, np.sin(half), 0.0, np.cos(half)),
        pole_velocity=vector(0.1, 0.2, 0.3),
        block_position=(vector(-4.9, 4.9, 5.0), vector(), vector(1.25, -1.9, 2.0), vector()),
        block_velocity=(vector(6, 7, 8), vector(), vector(-1, -2, -3), vector()),
        block_alive=tuple(np.array([True, False, True, False])),
    )
    fields = {
        "phase": "ACT",
        "validation": False,
        "score": 1.5,
        "tick": 12,
        "winner": "NO_WINNER",
        "over": False,
        "last_action": "ACTION_UP",
        "alive": True,
        "planar": False,
        "half_width": half_width,
        "observation": readings,
    }
    return View(**{**fields, **changes})


def sso(form="JSON", **changes):
    data = view(**changes)
    return serialise(data, form, draw(data))


@pytest.mark.requirement(84)
def test_it_is_a_string_of_json_in_one_line():
    text = sso("BOTH")
    assert isinstance(text, str)
    assert not set("#%\n\r") & set(text)
    assert json.dumps(json.loads(text), separators=(",", ":")) == text
    assert dict(text.fields) == json.loads(text)


@pytest.mark.requirement(84)
def test_it_has_the_fields_of_the_framework(recorded_data):
    recorded = json.loads(recorded_data("protocols/gvgai_server_golden.json").read_text())
    original = recorded[0]["first_init"]
    written = json.loads(sso())
    # The original's game has walls (immovable sprites), ours has blocks (movable ones).
    lists = {"immovablePositions", "movablePositions"}
    assert set(written) - lists == set(original) - lists | {"cartpole"}
    for name in set(written) & set(original):
        ours, theirs = written[name], original[name]
        assert type(ours) is type(theirs), name
    block, sprite = written["movablePositions"][0][0], original["immovablePositions"][0][0]
    assert {k: type(v) for k, v in block.items()} == {k: type(v) for k, v in sprite.items()}


@pytest.mark.requirement(84)
def test_every_field_is_described():
    names = [field.name for field in FIELDS]
    assert len(set(names)) == len(names)
    written = list(json.loads(sso("BOTH")))
    assert [name for name in names if name in written] == [n for n in names if n in set(written)]
    assert set(written) <= set(names)
    absent = set(names) - set(written)
    assert absent == {
        "NPCPositions",
        "immovablePositions",
        "resourcesPositions",
        "portalsPositions",
        "fromAvatarSpritesPositions",
    }
    assert set(json.loads(sso())["movablePositions"][0][0]) == set(OBJECT_FIELDS)


@pytest.mark.requirement(72)
def test_it_has_no_forward_model_but_the_whole_state():
    text = sso()
    for name in ("step", "advance", "copy", "reset", "state", "params", "env"):
        assert not hasattr(text, name)
    with pytest.raises(AttributeError, match="no field 'advance'"):
        _ = text.advance
    assert text.cartpole == {
        "cart": {"position": [1.0, -2.0, 0.0], "velocity": [3.0, 4.0, 0.0]},
        "pole": {
            "quaternion": [0.0, np.sin(0.1), 0.0, np.cos(0.1)],
            "angularVelocity": [float(np.float32(v)) for v in (0.1, 0.2, 0.3)],
        },
        "blocks": [
            {"position": [float(np.float32(v)) for v in (-4.9, 4.9, 5.0)], "velocity": [6, 7, 8]},
            {"position": [float(np.float32(v)) for v in (1.25, -1.9, 2)], "velocity": [-1, -2, -3]},
        ],
    }


@pytest.mark.requirement(97)
def test_game_objects_are_those_of_the_world():
    text = sso()
    assert text.worldDimension == [9.9, 9.9]
    assert (text.blockSize, text.observationGridNum, text.observationGridMaxRow) == (1, 10, 10)
    assert text.avatarPosition == pytest.approx([5.95, 2.95])
    assert text.avatarSpeed == 5.0
    assert text.avatarOrientation == pytest.approx([np.sin(0.2), 0.0])
    (blocks,) = text.movablePositions
    assert [block["obsID"] for block in blocks] == [1, 3]
    assert [block["category"] for block in blocks] == [6, 6]
    assert blocks[0]["position"] == pytest.approx({"x": 0.05, "y": 9.85}, abs=1e-6)
    near = blocks[1]
    assert near["reference"] == pytest.approx({"x": 5.95, "y": 2.95})
    assert near["sqDist"] == pytest.approx(0.25**2 + 0.1**2)
    assert (text.movablePositionsNum, text.movablePositionsMaxRow) == (1, 2)
    assert text.NPCPositions is None
    assert text.NPCPositionsNum == 0
    grid = text.observationGrid
    filled = {
        (i, j): cell for i, column in enumerate(grid) for j, cell in enumerate(column) if cell
    }
    assert set(filled) == {(0, 9), (5, 2), (6, 3)}
    assert filled[0, 9] == [blocks[0]]
    assert [each["category"] for each in filled[5, 2]] == [0]
    assert text.observationGridMaxCol == 1


@pytest.mark.requirement(97)
def test_cells_grow_with_the_room_and_what_is_outside_is_in_none():
    wide = sso(half_width=100.0)
    assert (wide.blockSize, wide.observationGridNum) == (10, 20)
    narrow = sso(half_width=2.4)
    cells = [cell for column in narrow.observationGrid for cell in column]
    assert sum(map(len, cells)) == 2  # the first block is elsewhere
    assert len(narrow.movablePositions[0]) == 2


@pytest.mark.requirement(97)
def test_stacked_blocks_read_like_single_ones():
    single = view().observation
    stack = replace(
        single,
        block_position=(Vector(*np.transpose(single.block_position)),),
        block_velocity=(Vector(*np.transpose(single.block_velocity)),),
        block_alive=(np.stack(single.block_alive),),
    )
    assert sso(observation=stack) == sso()


@pytest.mark.requirement(90)
def test_actions_push_the_cart():
    names = {LEFT: "left", RIGHT: "right", UP: "forward", DOWN: "backward"}
    for action in range(len(ACTIONS)):
        assert PUSHES[push(action, planar=False)] == names.get(action, "nothing")
        flat = names.get(action, "nothing") if action in (LEFT, RIGHT) else "nothing"
        assert PUSHES[push(action, planar=True)] == flat
    assert push(NIL, planar=False) == push(USE, planar=False) == 0
    assert set(sso().availableActions) == {ACTIONS[code] for code in names}
    assert sso(planar=True).availableActions == ["ACTION_LEFT", "ACTION_RIGHT"]


@pytest.mark.requirement(92)
def test_forms_hold_fields_or_a_picture_or_both():
    always = {field.name for field in FIELDS if field.form == "always"}
    names = {form: set(json.loads(sso(form))) for form in FORMS}
    assert names["IMAGE"] == always | {"imageArray"}
    assert names["BOTH"] == names["JSON"] | {"imageArray"}
    assert "imageArray" not in names["JSON"]
    assert sso("JSON").imageArray is None


@pytest.mark.requirement(92)
def test_the_picture_is_a_png_of_the_room():
    values = sso("IMAGE").imageArray
    assert all(-128 <= value <= 127 for value in values)
    pixels = decoded(np.array(values, np.int8).tobytes())
    assert pixels.shape == (SIDE, SIDE, 3)
    scale = 9.9 / SIDE

    def at(x, y):
        return pixels[SIDE - 1 - int((y + 4.95) / scale), int((x + 4.95) / scale)].astype(int)

    # Light and shadow change how bright a colour is, not which it is.
    for place, colour in (
        ((-4.8, 4.8), render.BLOCK),
        ((0.6, -2.3), render.CART),
        ((2.0, -2.0), render.POLE),
    ):
        picture = at(*place)
        np.testing.assert_allclose(
            picture / picture.sum(), np.divide(colour, sum(colour)), atol=0.02
        )
    assert np.ptp(at(-1.0, 0.0)) < 20  # the floor is grey


def decoded(content):
    """Pixels of a PNG whose rows have filter 0."""
    assert content[:8] == b"\x89PNG\r\n\x1a\n"
    rest, chunks = content[8:], {}
    while rest:
        (size,), kind = struct.unpack(">I", rest[:4]), rest[4:8]
        data, (check,) = rest[8 : 8 + size], struct.unpack(">I", rest[8 + size : 12 + size])
        assert check == zlib.crc32(kind + data)
        chunks[kind], rest = data, rest[12 + size :]
    width, height, bits, colours = struct.unpack(">IIBB", chunks[b"IHDR"][:10])
    assert (bits, colours) == (8, 2)
    rows = np.frombuffer(zlib.decompress(chunks[b"IDAT"]), np.uint8).reshape(height, -1)
    assert not rows[:, 0].any()
    return rows[:, 1:].reshape(height, width, 3)


def test_a_text_that_is_no_observation_has_no_fields():
    with pytest.raises(ValueError):
        _ = SerializableStateObservation("START").phase


# The fields in a game -----------------------------------------------------------------------------


@pytest.mark.requirement(72, 97)
def test_an_observation_follows_the_game():
    trial = TrackLifetime(track(most_plays=1), ScriptedClock())
    assert trial.payload == "START"
    trial.reply("START_DONE")
    assert (trial.observation().phase, trial.observation().gameTick) == ("INIT", 0)
    trial.reply("INIT_DONE")
    before = trial.observation()
    trial.reply("ACTION_RIGHT")
    after = trial.observation()
    assert (after.phase, after.gameTick, after.gameScore) == ("ACT", 1, 1.0)
    assert after.worldDimension == pytest.approx([4.8, 4.8])
    assert after.avatarSpeed > before.avatarSpeed
    assert after.cartpole["cart"]["velocity"][0] > before.cartpole["cart"]["velocity"][0]
    assert after.cartpole["blocks"] == []
    trial.reply("ACTION_ESCAPE")
    assert trial.observation().phase == "ABORT"
    trial.reply("0")
    assert trial.observation().isValidation
    trial.reply("INIT_DONE")
    assert trial.observation().isValidation


def test_the_originals_way_to_fill_two_fields():
    trial = TrackLifetime(track(most_plays=1, original_fields=True), ScriptedClock())
    fields = []
    for reply in ("START_DONE", *("INIT_DONE", "ABORT", "0") * 2):
        if trial.payload != "START":
            text = trial.observation()
            fields.append((text.phase, text.isValidation, text.gameTick))
        trial.reply(reply)
    assert fields == [
        ("INIT", False, 0),
        ("ACT", False, 0),
        ("ABORT", False, 0),
        ("INIT", True, -1),
        ("ACT", False, 0),
        ("ABORT", False, 0),
    ]


def test_winners_have_the_frameworks_codes():
    assert observation.WINNERS["PLAYER_DISQ"] == -100
    assert sorted(observation.WINNERS.values()) == [-100, -1, 0, 1]
