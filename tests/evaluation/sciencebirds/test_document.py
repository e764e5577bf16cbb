"""configMeta.xml and config.xml: what is read, what is refused, and where an error stands."""

import random
from pathlib import Path

import pytest

from evaluation.sciencebirds import document, document_order, levels, markup
from evaluation.sciencebirds.document import (
    ConfiguredTrial,
    Evaluation,
    LevelSet,
    Measurement,
    Meta,
    MetaTrial,
    PoolSet,
    SetLimits,
)
from evaluation.sciencebirds.levels import LevelPath
from evaluation.sciencebirds.markup import DocumentError

EXAMPLES = Path(__file__).parents[3] / "examples" / "sciencebirds"

CONFIG = """<?xml version="1.0" encoding="utf-16"?>
<evaluation>
  <novelty_detection_measurement step="2" measure_in_training="True" measure_in_testing="False" />
  <trials>
    <trial id="7" number_of_executions="2" checkpoint_time_limit="200"
      checkpoint_interaction_limit="9999999" notify_novelty="True">
      <game_level_set mode="training" time_limit="2760" total_interaction_limit="60000"
        attempt_limit_per_level="1" allow_level_selection="False">
        <game_levels level_path="Levels/novelty_level_1/type2/Levels/00004_1_1.xml" />
        <game_levels level_path="novelty_level_0/type1/Levels/00012.xml" />
      </game_level_set>
      <game_level_set mode="test" time_limit="0" total_interaction_limit="-1"
        attempt_limit_per_level="20" allow_level_selection="True">
        <game_levels level_path="novelty_level_3/type6/Levels/deep.xml" />
      </game_level_set>
    </trial>
  </trials>
</evaluation>
"""
WANTED = Evaluation(
    Measurement(2, True, False),
    (
        ConfiguredTrial(
            7,
            2,
            200,
            9999999,
            True,
            LevelSet(
                SetLimits(2760, 60000, 1, False),
                (
                    LevelPath(
                        "Levels/novelty_level_1/type2/Levels/00004_1_1.xml", 1, 2, 4, "novel"
                    ),
                    LevelPath("novelty_level_0/type1/Levels/00012.xml", 0, 1, 12, "novel"),
                ),
            ),
            (
                LevelSet(
                    SetLimits(0, -1, 20, True),
                    (
                        LevelPath(
                            "novelty_level_3/type6/Levels/deep.xml", 3, 6, 2475907165, "novel"
                        ),
                    ),
                ),
            ),
        ),
    ),
)

META = """<config_generation repeats="1">
  <novelty_detection_measurement step="5" measure_in_training="false" measure_in_testing="true"/>
  <trials>
    <trial notify_novelty="both">
      <count>3</count>
      <repeats>2</repeats>
      <checkpoint><limit type="time">200</limit><limit type="interaction">50</limit></checkpoint>
      <training>
        <limits>
          <limit type="time">600</limit>
          <limit type="interaction">200</limit>
          <limit type="attempt_per_level">3</limit>
          <limit type="allow_level_selection">true</limit>
        </limits>
        <game_level_sets>
          <game_level_set novelty_level="1" novelty_type="2" amount="10-50"
            novelty_absence_portion="0.25" no_diff_portion="0.5"/>
        </game_level_sets>
      </training>
      <test ordered="false">
        <game_level_sets>
          <game_level_set novelty_level="0" novelty_type="1" amount="4"
            set_appearance_percentage="33" %s
        </game_level_sets>
      </test>
    </trial>
  </trials>
</config_generation>
"""
ATTRIBUTES = 'time="60" interaction="70" attempt_per_level="2" allow_level_selection="true"/>'
CHILDREN = """><limits>
  <limit type="time">60</limit><limit type="interaction">70</limit>
  <limit type="attempt_per_level" value="2"/><limit type="allow_level_selection">true</limit>
</limits></game_level_set>"""


def config(text):
    return document.read_evaluation(markup.parse(text.encode(), "config.xml"))


def meta(text):
    return document.read_meta(markup.parse(text.encode(), "meta.xml"))


@pytest.mark.requirement(1)
def test_a_config_is_what_it_says():
    assert config(CONFIG) == WANTED
    assert config(CONFIG.replace("True", "true").replace("False", "false")) == WANTED


@pytest.mark.requirement(1)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_what_is_written_is_read_again(encoding, tmp_path):
    path = tmp_path / "config.xml"
    path.write_bytes(document.dumps(WANTED, "a remark").encode(encoding))
    assert document.load(path) == WANTED


@pytest.mark.requirement(1)
def test_any_evaluation_is_read_as_it_was_written():
    draw = random.Random(4)
    for _ in range(50):
        trials = []
        for number in range(draw.randrange(4)):
            sets = []
            for _ in range(1 + draw.randrange(3)):
                limits = SetLimits(
                    *(draw.randrange(-2, 100) for _ in range(3)), draw.random() < 0.5
                )
                count = draw.randrange(4)
                chosen = [
                    LevelPath.of(draw.randrange(9), 1 + draw.randrange(6), n) for n in range(count)
                ]
                sets.append(LevelSet(limits, tuple(chosen)))
            trained = draw.random() < 0.7
            training, tests = (sets[0], sets[1:]) if trained else (None, sets)
            numbers = (draw.randrange(-1, 5), draw.randrange(-1, 99), draw.randrange(-1, 99))
            trials.append(
                ConfiguredTrial(number, *numbers, draw.random() < 0.5, training, tuple(tests))
            )
        measurement = Measurement(draw.randrange(-1, 4), draw.random() < 0.5, draw.random() < 0.5)
        what = Evaluation(measurement, tuple(trials))
        assert config(document.dumps(what)) == what


@pytest.mark.requirement(26)
@pytest.mark.parametrize("limits", [ATTRIBUTES, CHILDREN], ids=["attributes", "children"])
def test_a_meta_is_what_it_says(limits):
    assert meta(META % limits) == Meta(
        Measurement(5, False, True),
        (
            MetaTrial(
                count=3,
                repeats=2,
                notify=(False, True),
                checkpoint_time=200,
                checkpoint_interactions=50,
                limits=SetLimits(600, 200, 3, True),
                training=(PoolSet(1, 2, (10, 50), 0.25, 0.5),),
                ordered=False,
                tests=(PoolSet(0, 1, (4, 4), percentage=33, limits=SetLimits(60, 70, 2, True)),),
            ),
        ),
    )


def test_values_may_be_attributes_or_elements():
    written_otherwise = (
        (META % ATTRIBUTES)
        .replace('<trial notify_novelty="both">', '<trial count="3" repeats="2">')
        .replace("<count>3</count>", '<notify_novelty value="both"/>')
        .replace("<repeats>2</repeats>", "")
        .replace('<checkpoint><limit type="time">200</limit>', '<checkpoint time="200">')
        .replace('<test ordered="false">', "<test><ordered>false</ordered>")
    )
    assert meta(written_otherwise) == meta(META % ATTRIBUTES)


def test_what_is_left_out_has_a_default():
    result = meta("<config_generation><trials><trial repeats='1'/></trials></config_generation>")
    assert result.measurement == Measurement(0, False, False)
    (trial,) = result.trials
    assert (trial.count, trial.notify, trial.ordered) == (1, (False,), True)
    assert (trial.training, trial.tests, trial.limits) == ((), (), SetLimits())


@pytest.mark.parametrize(
    ("old", "new", "place", "words"),
    [
        ('step="2"', 'step="two"', "3:3", "step is 'two'; it must be a whole number"),
        ('"True" measure', '"yes" measure', "3:3", "it must be true or false"),
        ('step="2"', 'steps="2"', "3:3", "unknown attribute 'steps'; allowed: step,"),
        ("<trials>", "<trials><x/>", "4:11", "is not known inside <trials>"),
        ('mode="test"', 'mode="exam"', "12:7", "it must be training or test"),
        ('mode="test"', 'mode="training"', "12:7", "is a second training set"),
        ("2760", "99999999999", "7:7", "it must be from -2147483647 to 2147483647"),
        ('id="7"', "", None, None),
        ("</trials>", "", "18:3", "not XML: mismatched tag"),
        (
            "</trial>",
            "</trial><trial id='7'><game_level_set mode='test'/></trial>",
            "16:13",
            "id 7",
        ),
        ("</trial>", "</trial><trial id='8'/>", "16:13", "holds no <game_level_set>"),
        ("novelty_level_3/type6", "novelty_level_9/type6", "14:9", "novelty level 9 of type 6"),
    ],
)
def test_an_error_says_where_and_what_to_change(old, new, place, words):
    text = CONFIG.replace(old, new, 1)
    assert text != CONFIG
    if place is None:
        assert config(text).trials[0].number == 0
        return
    with pytest.raises(DocumentError) as error:
        config(text)
    assert str(error.value).startswith(f"config.xml:{place}: ")
    assert words in str(error.value)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('amount="10-50"', 'amount="50-10"', "it must be a number or a range"),
        ('amount="10-50"', 'amount="-1"', "amount is"),
        ('amount="10-50"', "", "holds no amount"),
        ('percentage="33"', 'percentage="101"', "it must be from 0 to 100"),
        ('portion="0.5"', 'portion="nan"', "it must be a number from 0 to 1"),
        ('novelty_type="2"', 'novelty_type="7"', "novelty level 1 of type 7 is not known"),
        ("<repeats>2</repeats>", "", "holds no <repeats>"),
        ("<repeats>2</repeats>", "<repeats>2</repeats><repeats>2</repeats>", "takes only one"),
        ('"both"', '"maybe"', "it must be true, false or both"),
        ('type="time">600', 'type="hours">600', "type is 'hours'; it must be one of time,"),
        ('time="60"', 'time="60" absence="1"', "unknown attribute 'absence'"),
    ],
)
def test_errors_of_a_meta(old, new, words):
    text = (META % ATTRIBUTES).replace(old, new, 1)
    with pytest.raises(DocumentError, match=r"meta\.xml:\d+:\d+: <\w+>: ") as error:
        meta(text)
    assert words in str(error.value)


def test_a_limit_beside_limits_is_refused():
    beside = CHILDREN.replace("</limits>", '</limits><limit type="time">77</limit>')
    with pytest.raises(DocumentError, match="stands beside a <limit>; keep one of them"):
        meta(META % beside)


def test_one_document_is_not_taken_for_the_other():
    with pytest.raises(DocumentError, match=r"must be <evaluation>; this is a configMeta\.xml"):
        config(META % ATTRIBUTES)
    with pytest.raises(DocumentError, match=r"must be <config_generation>; this is a config\.xml"):
        meta(CONFIG)


# --- what is not let in ----------------------------------------------------------------------

LAUGHS = """<?xml version="1.0"?>
<!DOCTYPE e [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;">
<!ENTITY c "&b;&b;&b;&b;&b;&b;&b;&b;&b;&b;"><!ENTITY d "&c;&c;&c;&c;&c;&c;&c;&c;&c;&c;">]>
<evaluation><trials>&d;</trials></evaluation>
"""


@pytest.mark.parametrize(
    "text",
    [
        LAUGHS,
        '<!DOCTYPE e [<!ENTITY x SYSTEM "file:///etc/hostname">]><evaluation>&x;</evaluation>',
        '<!DOCTYPE e SYSTEM "http://localhost/e.dtd"><evaluation><trials/></evaluation>',
        '<!DOCTYPE e [<!ENTITY % x SYSTEM "file:///etc/hostname"> %x;]><evaluation/>',
        "<!DOCTYPE evaluation><evaluation><trials/></evaluation>",
    ],
    ids=["laughs", "external entity", "external type", "parameter entity", "type"],
)
def test_types_and_entities_are_refused(text):
    with pytest.raises(DocumentError, match="document type or entities, which are refused"):
        config(text)


def test_any_damage_is_an_error_with_a_place():
    draw = random.Random(8)
    refused = 0
    for _ in range(400):
        text = list(CONFIG if draw.random() < 0.5 else META % ATTRIBUTES)
        for _ in range(draw.choice((1, 1, 3))):
            at = draw.randrange(len(text))
            text[at : at + draw.choice((0, 1, 1, 20))] = draw.choice(("", "x", "<", "9", "&", '"'))
        read = config if "<evaluation" in "".join(text) else meta
        try:
            read("".join(text))
        except DocumentError:
            refused += 1
    assert refused > 100


def test_too_many_elements_and_too_much_text_are_refused(monkeypatch):
    with pytest.raises(DocumentError, match=r"config\.xml:1:1: <evaluation>: holds more than 1000"):
        config("<evaluation>" + "word\n" * 300 + "</evaluation>")
    monkeypatch.setattr(markup, "MAX_ELEMENTS", 5)
    with pytest.raises(DocumentError, match="is one of more than 5 elements"):
        config(CONFIG)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("<a>" * 100 + "</a>" * 100, "nested more than 16 deep"),
        ("", "not XML: no element found"),
        ("no document", "not XML"),
        ("<evaluation>", "not XML"),
        ('<?xml version="1.0" encoding="latin-1"?><evaluation/>', "must be utf-8 or utf-16"),
        ("<evaluation/>", "holds no <trials>"),
    ],
)
def test_what_is_no_document_is_refused(text, words):
    with pytest.raises(DocumentError, match=words):
        config(text)


def test_bytes_of_no_text_are_refused():
    with pytest.raises(DocumentError, match="is neither UTF-8 nor UTF-16"):
        markup.parse(b"\x00\xff\xfe<a/>", "f")


def test_a_document_that_is_too_long_is_refused(monkeypatch, tmp_path):
    monkeypatch.setattr(markup, "MAX_BYTES", 100)
    path = tmp_path / "config.xml"
    path.write_text(CONFIG)
    with pytest.raises(DocumentError, match="is longer than"):
        document.load(path)


@pytest.mark.parametrize(
    "path",
    [
        "../novelty_level_1/type1/Levels/a.xml",
        "x/../../novelty_level_1/type1/Levels/a.xml",
        "/novelty_level_1/type1/Levels/a.xml",
        "./novelty_level_1/type1/Levels/a.xml",
        "novelty_level_1/type1/Levels/../../a.xml",
        "novelty_level_1/type1/Levels/..%2fa.xml",
        "C:\\novelty_level_1\\type1\\Levels\\a.xml",
        "novelty_level_1/type1/Levels/a.xml/../../../etc/passwd",
        "novelty_level_1/type1/Levels/a.xml\n",
        "novelty_level_1/type1/Levels/a\0.xml",
        "file:///novelty_level_1/type1/Levels/a.xml",
        "x/" * 300 + "novelty_level_1/type1/Levels/a.xml",
        "",
    ],
)
def test_paths_that_lead_elsewhere_are_refused(path):
    with pytest.raises(levels.LevelPathError, match="it must be a relative path"):
        LevelPath.parse(path)


# --- levels ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "number", "novel", "parameters"),
    [
        ("novelty_level_0/type1/Levels/00003_1_1.xml", 3, False, {}),
        ("novelty_level_1/type1/Levels/17_1_1_x.xml", 17, True, (201, "easy")),
        ("novelty_level_8/type3/Levels/17.xml", 17, True, (208, "hard")),
        ("novelty_level_3/type5/Levels/17_2_4.xml", 17, True, (103, "medium")),
        ("novelty_level_15/type2/Levels/17.xml", 17, True, (115, "medium")),
        ("novelty_level_5/type1/Levels/17_0_1.xml", 17, False, {}),
        ("novelty_level_5/type1/Levels/17_1_0.xml", 17, False, {}),
    ],
)
def test_a_path_says_what_is_played(path, number, novel, parameters):
    level = LevelPath.parse(path)
    assert (level.number, level.novel) == (number, novel)
    if parameters:
        parameters = {"novelty/level": parameters[0], "novelty/difficulty": parameters[1]}
    assert level.variant == ("CartPole3D", tuple(sorted(parameters.items())))


# The levels of the catalogue that the page gives names to.
NAMED = {*range(101, 109), *range(111, 116), *range(200, 209)}


def test_every_level_that_is_named_can_be_made():
    from jaxsim import registry

    table = registry.spec("CartPole3D").parameters
    variants = set()
    for novelty in range(50):
        for novelty_type in range(9):
            try:
                level = LevelPath.of(novelty, novelty_type, 0)
                level.check()
            except levels.LevelPathError:
                continue
            assert LevelPath.parse(level.path) == level
            values = dict(level.variant[1])
            variants.add(values.get("novelty/level", 200))
            for name, value in values.items():
                assert value in table[name].choices
    assert variants == NAMED


def test_the_schedule_holds_every_set_once():
    schedule = document_order.schedule(WANTED)
    rows = [(b.phase, b.mode, b.learning, b.count, dict(b.parameters)) for b in schedule.blocks]
    assert rows == [
        (1, "train", True, 1, {"novelty/level": 201, "novelty/difficulty": "medium"}),
        (1, "train", True, 1, {}),
        (2, "test", False, 1, {"novelty/level": 103, "novelty/difficulty": "hard"}),
    ]


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.xml")), ids=lambda path: path.name)
def test_examples_are_read(path):
    read = document.load if path.name == "config.xml" else document.load_meta
    assert read(path).trials
