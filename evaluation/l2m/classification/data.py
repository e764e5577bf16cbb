"""Data sets of small images, and their variation by parameters."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from evaluation.schedule import Mode, Value
from jaxsim.parameters import Parameter, Values, unknown

TEST_SHARE: Final = 4
"""Every fourth example is test data."""

Floats = npt.NDArray[np.float32]
Labels = npt.NDArray[np.int32]


@dataclass(frozen=True)
class ImageData:
    """Examples of a data set.

    Attributes:
      images: (N, H, W) or (N, H, W, C) float32 in [0, 1].
      labels: (N,) int32 from 0 to ``classes`` - 1.
      classes: number of classes.
      testing: (N,) bool, which examples are for tests; None for every fourth.
    """

    images: Floats
    labels: Labels
    classes: int
    testing: npt.NDArray[np.bool_] | None = None

    def __post_init__(self) -> None:
        """Check that the arrays fit.

        Raises:
          ValueError: names the arrays.
        """
        if self.images.ndim not in (3, 4) or len(self.images) != len(self.labels):
            raise ValueError(
                f"images {self.images.shape} and labels {self.labels.shape} must be (N, H, W), (N,)"
            )
        if not len(self.labels) or self.labels.min() < 0 or self.labels.max() >= self.classes:
            raise ValueError(f"labels must be from 0 to {self.classes - 1}, with at least one")

    def rows(self, mode: Mode, first: int, last: int) -> npt.NDArray[np.int64]:
        """Positions of the training or test examples of the classes ``first`` to ``last``."""
        testing = self.testing
        if testing is None:
            testing = np.arange(len(self.labels)) % TEST_SHARE == TEST_SHARE - 1
        selected = (self.labels >= first) & (self.labels <= last)
        return np.flatnonzero(selected & (testing == (mode == "test")))


def batch_log_info(examples: int, correct: int) -> dict[str, float]:
    """Columns of a batch in the log: the shares of correct and of wrong answers."""
    return {"score": correct / examples, "score_error": (examples - correct) / examples}


@dataclass(frozen=True)
class DataSpec:
    """A data set that a syllabus may name.

    Attributes:
      name: as in ``"$dataset"``.
      classes: number of classes.
      size: height and width of an image, pixels.
      load: function that reads the examples.
      description: one line.
      get_batch_log_info: function from the numbers of examples and of correct answers of a batch to
        the columns of its row in the log, which must include ``score``. Only the course calls it.
    """

    name: str
    classes: int
    size: int
    load: Callable[[], ImageData]
    description: str
    get_batch_log_info: Callable[[int, int], Mapping[str, float]] = batch_log_info

    @property
    def task(self) -> str:
        """Name in errors, as for tasks of agents."""
        return self.name

    @property
    def parameters(self) -> dict[str, Parameter]:
        """Parameters that a syllabus may vary, by path."""
        last, reach = self.classes - 1, float(self.size - 1)
        rows = (
            Parameter("features/shift_x", 0, "pixels", -reach, reach, (), "image moved right"),
            Parameter("features/shift_y", 0, "pixels", -reach, reach, (), "image moved down"),
            Parameter("features/turns", 0, "", None, None, (0, 1, 2, 3), "quarter turns, left"),
            Parameter("features/contrast", 1.0, "", -1.0, 1.0, (), "about 0.5; -1 inverts"),
            Parameter("features/noise", 0.0, "", 0.0, 1.0, (), "standard deviation, Gaussian"),
            Parameter("labels/shift", 0, "", 0, last, (), "added to the label, cyclic"),
            Parameter("classes/first", 0, "", 0, last, (), "lowest class that appears"),
            Parameter("classes/last", last, "", 0, last, (), "highest class that appears"),
        )
        return {row.path: row for row in rows}

    def expand(self, values: Values) -> dict[str, Any]:
        """Return the values; no value stands for several parameters."""
        return dict(values)

    def fill(self, values: Mapping[str, Value]) -> dict[str, Value]:
        """Return all parameters; missing ones have their defaults."""
        return {path: values.get(path, row.default) for path, row in self.parameters.items()}

    def check(self, values: Mapping[str, Value]) -> None:
        """Check that the values are consistent.

        Raises:
          ValueError: says what to change.
        """
        full = self.fill(values)
        if full["classes/first"] > full["classes/last"]:  # type: ignore[operator]  # both are int
            raise ValueError("'classes/first' is above 'classes/last'; swap them")


def digits() -> ImageData:
    """Read scikit-learn's 1,797 handwritten digits of 8 x 8 pixels.

    Raises:
      ValueError: scikit-learn is not installed.

    Source: E. Alpaydin and C. Kaynak, Optical Recognition of Handwritten Digits, UCI Machine
    Learning Repository (1998).
    """
    try:
        from sklearn.datasets import load_digits
    except ModuleNotFoundError as error:
        raise ValueError(
            "the data set Digits needs scikit-learn: pip install 'jaxsim-novelty[classification]'"
        ) from error
    bunch = load_digits()
    return ImageData((bunch.images / 16).astype(np.float32), bunch.target.astype(np.int32), 10)


DATA_SETS: dict[str, DataSpec] = {
    "Digits": DataSpec("Digits", 10, 8, digits, "handwritten digits, 8 x 8 pixels")
}
"""The data sets by name; further ones can be added."""


def spec(name: str) -> DataSpec:
    """Return a data set by name.

    Raises:
      ValueError: an unknown name; the message lists the known ones.
    """
    if name not in DATA_SETS:
        raise ValueError(unknown("data set", name, DATA_SETS))
    return DATA_SETS[name]


def vary(
    images: Floats,
    labels: Labels,
    classes: int,
    values: Mapping[str, Value],
    generator: np.random.Generator,
) -> tuple[Floats, Labels]:
    """Vary examples by the parameters: images are turned, then moved, then change contrast.

    Args:
      images: (M, H, W) or (M, H, W, C) in [0, 1].
      labels: (M,).
      classes: number of classes.
      values: all parameters, from `DataSpec.fill`.
      generator: of the noise.

    Returns:
      (images, labels) of the same shapes. Pixels that move out of an image are lost; new ones are
      0. Noise may exceed [0, 1].
    """
    turned = np.rot90(images, int(values["features/turns"]), axes=(1, 2))
    moved = _move(turned, int(values["features/shift_y"]), int(values["features/shift_x"]))
    changed = 0.5 + float(values["features/contrast"]) * (moved - 0.5)
    noise = float(values["features/noise"]) * generator.standard_normal(images.shape)
    shifted = (labels + int(values["labels/shift"])) % classes
    return (changed + noise).astype(np.float32), shifted.astype(np.int32)


def _move(images: Floats, down: int, right: int) -> Floats:
    """Move images by whole pixels."""
    moved = np.zeros_like(images)
    height, width = images.shape[1:3]
    to_y, from_y = _overlap(down, height)
    to_x, from_x = _overlap(right, width)
    moved[:, to_y, to_x] = images[:, from_y, from_x]
    return moved


def _overlap(shift: int, size: int) -> tuple[slice, slice]:
    """(destination, source) along one axis."""
    return slice(max(shift, 0), size + min(shift, 0)), slice(max(-shift, 0), size - max(shift, 0))
