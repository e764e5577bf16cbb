"""docs/sciencebirds.md is that of the code, and what it shows works."""

import re
import struct
from pathlib import Path

import pytest

from evaluation.sciencebirds import codec, document, markup, results, server
from evaluation.sciencebirds.codes import GameState
from evaluation.sciencebirds.harness import MAX_VECTORS
from tools import islands, sciencebirds_page

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "sciencebirds.md").read_text(encoding="utf-8")

LETTERS = {"u8": "B", "u32": "I", "i32": "i", "f32": "f"}
# What follows a number of things or of bytes, of which there are none in the smallest message.
COUNTED = {
    "u32 length, bytes of UTF-8": "I",
    "i32 length, bytes of UTF-8": "i",
    "u32 length, JSON": "I",
    "u32 length, JSON, five spaces": "I",
    "i32 number, as many i32": "i",
    "u32 number, as many u32": "I",
    "i32 number, for each i32 x, y, t1, t2": "i",
    "u32 number, for each u32 length, JSON, five spaces": "I",
    "u32 width, u32 height, 3 width height bytes": "II",
    "one u8 for each shot": "",
}
SMALLEST = {"text": "", "signed text": "", "ids": (), "shots": (), "scores": (), "truths": []}
SMALLEST |= {"picture": codec.NO_PICTURE, "answers": []}


def rows() -> list[list[str]]:
    section = PAGE.split("## Requests and replies\n")[1].split("\n## ")[0]
    cells = [line.strip("| ").split(" | ") for line in section.splitlines() if line[:1] == "|"]
    return cells[2:]


def structure(cell: str) -> str:
    """The format of `struct` that a cell of the table describes."""
    layouts = re.findall(r"(?:^|; )([^*]+?) \*\*\w+\*\*", cell)
    return "".join(LETTERS.get(each, COUNTED.get(each, "?")) for each in layouts)


def smallest(fields) -> dict:
    return {name: SMALLEST.get(kind, 0) for name, kind in fields}


@pytest.mark.requirement(34)
def test_the_page_is_current():
    assert islands.filled(PAGE, sciencebirds_page.islands()) == PAGE, "run python -m tools.pages"


def test_numbers_in_the_text_are_those_of_the_code():
    text = " ".join(PAGE.split())
    columns = (results.LEVEL_COLUMNS, results.LIKELIHOOD_COLUMNS)
    level, likelihood = (", ".join(f"`{name}`" for name in each) for each in columns)
    for words in (
        f"more than {markup.MAX_BYTES // 2**20} MiB; elements nested more than {markup.MAX_DEPTH} ",
        f"more than {document.MAX_TRIALS:,} trials or {document.MAX_LEVELS:,} levels",
        f"more than {results.MAX_REPORTED // 2**20} MiB would have been reported",
        f"Longest text of 66 and 67: {codec.MAX_TEXT // 2**20} MiB.",
        f"Most ids of 66: {codec.MAX_IDS:,}. Shots of 33 and 43: {codec.MAX_SHOTS}.",
        f"Feature vectors in one reply: {MAX_VECTORS}.",
        f"for {server.IDLE_LIMIT:g} s (`--idle-limit`)",
        f"gets a byte {codec.NOTHING_LEFT:#04x} and is disconnected",
        f"or was left (Playing): {level}.",
        f"a row a report of novelty: {likelihood}.",
    ):
        assert words in text, words


@pytest.mark.requirement(34)
def test_the_table_says_what_is_sent():
    listed = {int(row[0]): row for row in rows() if row[0] != "0"}
    assert set(listed) == set(codec.REQUESTS)
    behind = [row[1] for row in rows() if row[0] == "0"]
    assert behind == [f"`{message.name}`" for message in codec.EXTENSIONS.values()]
    for code, message in codec.REQUESTS.items():
        _, name, request, reply, _ = listed[code]
        assert name == f"`{message.name}`"
        form = struct.Struct(f">B{structure(request)}")
        data = message.encode(smallest(message.fields))
        assert len(data) == form.size and form.unpack(data)[0] == code
        if message.reply and not {"json", "truth"} & set(dict(message.reply).values()):
            form = struct.Struct(f">{structure(reply)}")
            data = message.encode_reply(*smallest(message.reply).values())
            assert len(data) == form.size
        assert (structure(reply) == "") == (message.reply in ((), (("accepted", "answers"),)))


@pytest.mark.requirement(34)
def test_the_four_requests_of_the_protocol_are_as_they_were_published():
    listed = {int(row[0]): row for row in rows()}
    assert structure(listed[53][2]) == "" and structure(listed[53][3]) == "I"
    assert structure(listed[66][2]) == "ffiii" and structure(listed[66][3]) == "B"
    assert structure(listed[67][2]) == "I" and structure(listed[67][3]) == "B"
    assert structure(listed[68][2]) == "" and structure(listed[68][3]) == "IIIIBBB"


def test_the_table_of_states_is_complete():
    for state in GameState:
        assert re.search(rf"^\| {int(state)} \| {state.name} \| \w", PAGE, re.MULTILINE)


def test_links_lead_somewhere():
    for target in re.findall(r"\]\(([^)#]+)", PAGE):
        assert (ROOT / "docs" / target).exists(), target
