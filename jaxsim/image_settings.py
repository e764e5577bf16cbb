"""Parameters of the camera among the sensors, for every world that can be drawn.

They are apart from `jaxsim.imaging`, so that programs without pictures do not import it.
"""

from collections.abc import Mapping
from typing import Any

from jaxsim import parameters
from jaxsim.parameters import Parameter, Values

VIEWS = ("corner", "side", "top", "first")
MOST_PIXELS = 1024
"""Most pixels of a side of a picture."""
MOST_SAMPLES = 8
DEFAULT_PIXELS = 64
"""Pixels of a side by default."""

GROUP = "sensors/image/"
HEIGHT, WIDTH = f"{GROUP}height", f"{GROUP}width"
PARAMETERS: dict[str, Parameter] = {
    row.path: row
    for row in (
        Parameter(
            HEIGHT,
            0,
            "pixels",
            0,
            MOST_PIXELS,
            description="of the picture in observations; 0 for the width, and both 0 for none",
        ),
        Parameter(WIDTH, 0, "pixels", 0, MOST_PIXELS, description="of it; 0 for the height"),
        Parameter(f"{GROUP}view", VIEWS[0], choices=VIEWS, description="where its camera stands"),
        Parameter(f"{GROUP}grey", 0, choices=(0, 1), description="1 for luminance, 0 for colour"),
        Parameter(
            f"{GROUP}samples",
            1,
            "",
            1,
            MOST_SAMPLES,
            description="rays along each side of a pixel",
        ),
    )
}
"""Rows by path; they change observations and nothing in the world."""
DEFAULTS = {path: row.default for path, row in PARAMETERS.items()}


def check(values: Values) -> None:
    """Check that a picture whose view, colour or rays are set has a size.

    Args:
      values: by path, each accepted by its row; others are ignored.

    Raises:
      ValueError: a view, a colour or rays are set, and no size.
    """
    if values.get(HEIGHT) or values.get(WIDTH):
        return
    for path, default in DEFAULTS.items():
        if values.get(path, default) != default:
            raise ValueError(
                f"parameter {path!r} is {values[path]!r}, and there is no picture; set {HEIGHT!r}"
            )


def by_path(options: object) -> dict[str, Any]:
    """Turn the option `image` of `jaxsim.make` into values by path.

    Args:
      options: by the last part of their paths; {} for 64 x 64 pixels in colour from the corner.

    Raises:
      ValueError: no mapping, or an option that does not exist.
    """
    if not isinstance(options, Mapping):
        raise ValueError(f"image is {options!r}; it must be options by name, {{}} for the usual")
    names = [path.removeprefix(GROUP) for path in PARAMETERS]
    for name in options:
        if name not in names:
            raise ValueError(parameters.unknown("image option", str(name), names))
    values = {
        f"{GROUP}{name}": int(value) if name == "grey" and isinstance(value, bool) else value
        for name, value in options.items()
    }
    return values if HEIGHT in values or WIDTH in values else {HEIGHT: DEFAULT_PIXELS, **values}


def split(values: Values) -> tuple[dict[str, Any], dict[str, Any] | None]:
    """Split values into those of the world and those of a picture.

    Args:
      values: by path, each accepted by its row.

    Returns:
      (values of the world, all values of the picture or None for no picture).

    Raises:
      ValueError: as `check`.
    """
    check(values)
    world = {path: value for path, value in values.items() if path not in PARAMETERS}
    picture = DEFAULTS | {path: value for path, value in values.items() if path in PARAMETERS}
    if not (picture[HEIGHT] or picture[WIDTH]):
        return world, None
    picture[HEIGHT], picture[WIDTH] = (
        picture[HEIGHT] or picture[WIDTH],
        picture[WIDTH] or picture[HEIGHT],
    )
    return world, picture
