"""Hints of the original generator about the novelty of an episode.

Source: the phase 3 WSU novelty generator for CartPole; its cartpole document shows one object where
the generator sends a list of objects.
"""

from jaxsim.json_types import JsonMapping, JsonObject

FIELDS = ("level", "entity", "attribute", "change")
"""Fields of a hint, in the order in which hint levels 0 to 3 fill them."""

HINT_LEVELS = (-1, 0, 1, 2, 3)
"""-1 gives nothing, 0 the level, 1 also the entity, 2 also the attribute, 3 also the change."""

LEVELS_PER_GROUP = 50  # hints give 101 and 201 both as level 1

HintWords = tuple[str | None, str | None, str | None]

NOTHING: HintWords = (None, None, None)
TO_PLACE: HintWords = ("block", "direction", "toward location")
MORE: HintWords = ("block", "quantity", "increasing")

HINT_WORDS: dict[int, HintWords] = {
    50: NOTHING,
    51: NOTHING,
    52: NOTHING,
    53: NOTHING,
    101: ("cart", "mass", "increase"),
    102: ("block", "speed", "decrease"),
    103: TO_PLACE,
    104: ("block", "size", "increase"),
    105: ("block", "direction", "toward block"),
    106: ("block", "gravity", "increase"),
    107: TO_PLACE,
    108: MORE,
    111: NOTHING,
    112: NOTHING,
    113: NOTHING,
    114: NOTHING,
    115: NOTHING,
    200: NOTHING,
    201: ("pole", "size", "increase"),
    202: TO_PLACE,
    203: TO_PLACE,
    204: ("block", "bounce", "increase"),
    205: ("pole", "direction", "toward block"),
    206: ("pole", "force", "toward walls"),
    207: ("block", "direction", "toward pole"),
    208: MORE,
}
"""Entity, attribute and change by level of the novelty catalogue."""


def _words(place: int) -> tuple[str, ...]:
    column = (words[place] for words in HINT_WORDS.values())
    return tuple(sorted({word for word in column if word is not None}))


ENTITIES, ATTRIBUTES, CHANGES = (_words(place) for place in range(3))
"""All words of each kind; compiled agents get their indices."""

BLOWN = ("block", "cart", "pole")
"""Entities of level 206, the only level with a list of several objects."""


def hint(level: int, hint_level: int, *, distinct_entities: bool = False) -> list[JsonObject]:
    """Return the hint that the first feature vector of an episode carries.

    Args:
      level: of the novelty catalogue, a key of `HINT_WORDS`.
      hint_level: amount of information, one of `HINT_LEVELS`.
      distinct_entities: for level 206 only. The original means to name block, cart and pole there,
        but lists one object three times, so all three read pole; True lists the three entities.

    Returns:
      New dicts with the keys `FIELDS`, three at level 206 and one elsewhere. Fields above the hint
      level are None; the level is its number modulo 50.

    Raises:
      ValueError: an unknown level or hint level.
    """
    _check("level", level, tuple(HINT_WORDS))
    _check("hint_level", hint_level, HINT_LEVELS)
    entity, attribute, change = HINT_WORDS[level]
    entities: tuple[str | None, ...] = (entity,)
    if level == 206:
        entities = BLOWN if distinct_entities else (entity,) * len(BLOWN)
    number = int(level) % LEVELS_PER_GROUP
    return [shown((number, name, attribute, change), hint_level) for name in entities]


def codes(level: int, hint_level: int) -> tuple[int, int, int, int]:
    """Return a hint as numbers: level, entity, attribute and change, -1 for None.

    Args:
      level: of the novelty catalogue, a key of `HINT_WORDS`.
      hint_level: amount of information, one of `HINT_LEVELS`.

    Raises:
      ValueError: an unknown level or hint level.
    """
    return codes_of(hint(level, hint_level)[0])


def codes_of(part: JsonMapping) -> tuple[int, int, int, int]:
    """Return an object of a hint as numbers.

    Args:
      part: an object of the list that `hint` returns.

    Returns:
      Level, entity, attribute and change; -1 for None, and for a word that no level of the
      catalogue has.
    """
    words = zip(FIELDS[1:], (ENTITIES, ATTRIBUTES, CHANGES), strict=True)
    codes = [
        vocabulary.index(part[name]) if part[name] in vocabulary else -1
        for name, vocabulary in words
    ]
    return -1 if part["level"] is None else part["level"], codes[0], codes[1], codes[2]


def shown(values: tuple[int | str | None, ...], hint_level: int) -> JsonObject:
    """An object of a hint with its first `hint_level + 1` fields; the others are None.

    Args:
      values: level, entity, attribute and change.
      hint_level: one of `HINT_LEVELS`.
    """
    return {
        field: value if place <= hint_level else None
        for place, (field, value) in enumerate(zip(FIELDS, values, strict=True))
    }


def _check(name: str, value: object, allowed: tuple[int, ...]) -> None:
    # True == 1 in Python, but a bool is not a hint level.
    if isinstance(value, bool) or value not in allowed:
        listed = ", ".join(str(number) for number in allowed)
        raise ValueError(f"{name} is {value!r}; it must be one of {listed}")
