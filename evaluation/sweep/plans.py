"""A plan: a sweep whose cells are ordered and divided into units, as a self-contained folder.

    plan.json           the sweep file's values, the order of its cells, sizes of units, versions
    inputs/             copies of the files that the values name, as syllabi
    units/0000/         results of units 0 to 999, two files each
    running/, failed/   notes on running processes and on failed units

`plan.json` is as small for a million cells as for ten.
"""

import hashlib
import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final

from evaluation.files import write_json
from evaluation.json_types import JsonMapping, JsonObject, JsonValue
from evaluation.sweep.document import Sweep, sweep_from
from evaluation.sweep.grid import CellGroup, Grid, Steps, Units

FORMAT: Final = 2
FILE: Final = "plan.json"
INPUTS: Final = "inputs"


@dataclass(frozen=True)
class Plan:
    """A sweep that is ready to be played.

    Attributes:
      folder: of the plan and its results.
      manifest: content of `plan.json`.
    """

    folder: Path
    manifest: JsonMapping

    @property
    def base(self) -> str:
        """Name of the base command."""
        return str(self.manifest["sweep"]["base"])

    @property
    def digest(self) -> str:
        """Hash of everything that results depend on, except versions."""
        return str(self.manifest["digest"])

    @cached_property
    def sweep(self) -> Sweep:
        """Content of the sweep file."""
        return sweep_from(self.manifest["sweep"], self.manifest["name"])

    @cached_property
    def grid(self) -> Grid:
        """All cells."""
        groups = tuple(
            CellGroup(g["program"], _steps(g["slow"]), _steps(g["fast"]), g["pack"], g["start"])
            for g in self.manifest["groups"]
        )
        return Grid(self.sweep, groups, self.manifest["programs"])

    @cached_property
    def units(self) -> Units:
        """All units, as a sequence."""
        return Units(self.grid, tuple(self.manifest["unit_packs"]))

    @cached_property
    def inputs(self) -> dict[str, Path]:
        """Copies of the files that values name, by value."""
        named = self.manifest["inputs"].items()
        return {value: self.folder / INPUTS / entry["name"] for value, entry in named}

    @cached_property
    def whole_hash(self) -> str:
        """Hash of everything that results depend on, with the versions that it was planned with."""
        return digest_of([self.digest, self.manifest["versions"]])[:8]

    @cached_property
    def unit_hash(self) -> str:
        """Hash of all that and the sizes of the units: the cells of every unit follow from it."""
        return digest_of([self.whole_hash, self.manifest["unit_packs"]])[:8]


def groups_json(grid: Grid) -> list[JsonObject]:
    """Groups as JSON values; if a group has all steps of a bundle, their number stands for them."""

    def steps(parts: Steps) -> list[JsonValue]:
        return [[place, len(s) if isinstance(s, range) else list(s)] for place, s in parts]

    return [
        {
            "program": group.program,
            "slow": steps(group.slow),
            "fast": steps(group.fast),
            "pack": group.pack,
            "start": group.start,
        }
        for group in grid.groups
    ]


def _steps(parts: JsonValue) -> Steps:
    return tuple((place, range(s) if isinstance(s, int) else tuple(s)) for place, s in parts)


def digest_of(values: JsonValue) -> str:
    """SHA-256 of JSON values."""
    text = json.dumps(values, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def identity(content: JsonMapping, inputs: JsonMapping) -> str:
    """Hash of everything that results depend on, except versions.

    Args:
      content: values of the sweep file.
      inputs: of the manifest.
    """
    relevant = {key: value for key, value in content.items() if key != "name"}
    # Cells are numbered in the order of the axes, which the hash of an object ignores.
    order = [[*content.get("axes", {})], *([*table] for table in content.get("zip", []))]
    hashes = {value: entry["sha256"] for value, entry in inputs.items()}
    return digest_of([FORMAT, relevant, order, hashes])


def load(folder: Path | str) -> Plan:
    """Open the folder of a plan.

    Raises:
      ValueError: there is no plan, or it is damaged or of another format.
    """
    folder = Path(folder)
    path = folder / FILE
    try:
        manifest = json.loads(path.read_bytes())
    except NotADirectoryError as error:
        raise ValueError(f"{folder} is a file; name the folder of a plan") from error
    except FileNotFoundError as error:
        raise ValueError(
            f"{folder} holds no plan; make one with: jaxsim sweep plan FILE --out {folder}"
        ) from error
    except (OSError, ValueError, RecursionError) as error:
        raise ValueError(f"{path} cannot be read, or is damaged: plan again elsewhere") from error
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise ValueError(f"{path} is of another version of this package: plan again elsewhere")
    plan = Plan(folder, manifest)
    try:
        digest = identity(manifest["sweep"], manifest["inputs"])
        consistent = len(plan.units) == manifest["units"] and plan.grid.cells == manifest["cells"]
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise ValueError(f"{path} is damaged: plan again elsewhere") from error
    if not consistent or digest != plan.digest:
        raise ValueError(f"{path} was changed after it was written: plan again elsewhere")
    return plan


def write(plan: Plan) -> None:
    """Write `plan.json`, whole or not at all."""
    write_json(plan.folder / FILE, dict(plan.manifest))
