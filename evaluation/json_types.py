"""Names of JSON values, as `json.loads` returns them and `json.dumps` takes them.

They repeat those of `jaxsim.json_types`: to import that package is to import JAX, for which
commands that only read files must not wait.
"""

from collections.abc import Mapping
from typing import Any

JsonValue = Any
"""None, a truth value, a number, text, or a list or an object of such."""

JsonObject = dict[str, JsonValue]
"""An object as a dictionary that its owner may change."""

JsonMapping = Mapping[str, JsonValue]
"""An object that is only read."""
