"""The table on control in the open world, from performances by hand."""

import numpy as np

from tools import open_control_page


def row(pd, mpc, best, difficulty="hard", held_out=False):
    """A sample with these mean performances."""
    values = {"pd": pd, "mpc": mpc, "clairvoyant": best}
    return {"difficulty": difficulty, "held_out": held_out, **values}


def cells(lines):
    """Cells of a table by the first one of each row."""
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return {first: rest for first, *rest in rows}


def test_the_share_that_is_won_back_counts_where_there_is_something_to_win():
    rows = [
        row(0.2, 0.6, 1.0),
        row(0.4, 0.9, 0.9, held_out=True),
        row(0.5, 0.8, 0.9),
        row(0.9, 0.9, 0.94, "easy"),  # nothing to win
    ]
    table = cells(open_control_page.control(rows))
    assert list(table) == ["samples", "---", "all", "easy", "medium", "hard", "known", "held out"]
    number, pd, mpc, best, differ, share = table["all"]
    assert (number, differ) == ("4", "3")
    for text, values in ((pd, [0.2, 0.4, 0.5, 0.9]), (mpc, [0.6, 0.9, 0.8, 0.9])):
        assert text.startswith(f"{np.mean(values):.3f} (")
    assert best.startswith("0.935 (")
    assert share.startswith("0.750 (")  # of .5, 1 and .75
    assert table["easy"][0] == "1" and table["easy"][-2:] == ["0", "–"]
    assert table["medium"] == ["0", "–", "–", "–", "0", "–"]
    assert table["held out"][0] == "1" and table["known"][0] == "3"


def test_intervals_contain_their_estimates():
    draw = np.random.default_rng(0)
    rows = [row(0.2, 0.2 + 0.6 * share, 0.8) for share in draw.uniform(0.4, 1, 60)]
    share = cells(open_control_page.control(rows))["all"][-1]
    value, low, high = (float(part.strip("()")) for part in share.replace(" to ", " ").split())
    assert 0.4 < low < value < high < 1 and high - low < 0.3
