"""Data sets of images from folders of arrays, a common layout for CIFAR.

``DIR/NAME/`` has train_images.npy, train_labels.npy, test_images.npy and test_labels.npy: images
(N, H, H) or (N, H, H, C), bytes or floats in [0, 1], and labels (N,), whole numbers from 0. The
name of the folder is that of the data set in a syllabus.
"""

import functools
import re
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

from evaluation.l2m.classification.data import DATA_SETS, DataSpec, ImageData

PARTS: Final = ("train_images", "train_labels", "test_images", "test_labels")
MOST_BYTES: Final = 2**32
"""Maximum size of a file."""
MOST_CLASSES: Final = 65_536  # outputs of a learner
NAME: Final = re.compile(r"[0-9A-Za-z_.-]+")
"""Names that a log of the 2019 layout may hold."""


def register(folder: Path) -> list[str]:
    """Add every data set below a folder to `DATA_SETS`.

    Returns:
      Their names.

    Raises:
      ValueError: the folder has no data set, a file is missing or is not an array of images or
        labels, or a name that is taken or that logs cannot have.
    """
    paths = sorted(part.parent for part in folder.glob(f"*/{PARTS[0]}.npy"))
    if not paths:
        raise ValueError(f"{folder} has no data set: there is no {folder}/NAME/{PARTS[0]}.npy")
    for path in paths:
        if not NAME.fullmatch(path.name):
            allowed = "letters, digits, '_', '-' and '.'"
            raise ValueError(
                f"the name {path.name!r} of {path} must be {allowed}; rename the folder"
            )
        # Logs write names in small letters.
        if path.name.lower() in map(str.lower, DATA_SETS):
            raise ValueError(f"the name {path.name!r} of {path} is taken; rename the folder")
        examples = read(path)
        size = examples.images.shape[1]
        text = f"{len(examples.labels):,} images of {path}"
        load = functools.partial(_same, examples)
        DATA_SETS[path.name] = DataSpec(path.name, examples.classes, size, load, text)
    return [path.name for path in paths]


def read(folder: Path) -> ImageData:
    """Read one data set.

    Raises:
      ValueError: a file is missing or is not an array of images or labels; the message names it.
    """
    arrays = {name: _array(folder / f"{name}.npy") for name in PARTS}
    images = [_images(folder, name, arrays[name]) for name in (PARTS[0], PARTS[2])]
    labels = [_labels(folder, name, arrays[name]) for name in (PARTS[1], PARTS[3])]
    if images[0].shape[1:] != images[1].shape[1:]:
        raise ValueError(
            f"{folder}: training images are {images[0].shape[1:]} and test images "
            f"{images[1].shape[1:]}; they must be of one shape"
        )
    testing = np.repeat([False, True], [len(images[0]), len(images[1])])
    joined = np.concatenate(labels)
    try:
        return ImageData(np.concatenate(images), joined, int(joined.max(initial=0)) + 1, testing)
    except ValueError as error:
        raise ValueError(f"{folder}: {error}") from error


def _same(examples: ImageData) -> ImageData:
    return examples


def _array(path: Path) -> np.ndarray:
    if not path.is_file():
        raise ValueError(f"{path} is missing; a data set has {', '.join(PARTS)}, each .npy")
    if path.stat().st_size > MOST_BYTES:
        raise ValueError(f"{path} has more than {MOST_BYTES:,} bytes")
    try:
        return np.asarray(np.load(path, allow_pickle=False))
    except (ValueError, OSError, EOFError, MemoryError) as error:
        raise ValueError(f"{path} is not an array of numbers, saved by numpy.save") from error


def _images(folder: Path, name: str, array: np.ndarray) -> npt.NDArray[np.float32]:
    if array.ndim not in (3, 4) or array.shape[1] != array.shape[2] or 0 in array.shape[1:]:
        raise ValueError(
            f"{folder}/{name}.npy is {array.shape}; it must be (N, H, H) or (N, H, H, C)"
        )
    if array.dtype == np.uint8:
        return (array / np.float32(255)).astype(np.float32)
    if not np.issubdtype(array.dtype, np.floating) or not ((array >= 0) & (array <= 1)).all():
        raise ValueError(f"{folder}/{name}.npy must hold bytes, or numbers from 0 to 1")
    return array.astype(np.float32)


def _labels(folder: Path, name: str, array: np.ndarray) -> npt.NDArray[np.int32]:
    if array.ndim != 1 or not np.issubdtype(array.dtype, np.integer):
        raise ValueError(f"{folder}/{name}.npy must hold one whole number per image")
    if array.size and not 0 <= int(array.min()) <= int(array.max()) < MOST_CLASSES:
        raise ValueError(f"{folder}/{name}.npy must hold classes from 0 to {MOST_CLASSES - 1}")
    return array.astype(np.int32)
