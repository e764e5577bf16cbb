"""Results of an evaluation, as objects and as strict JSON."""

import math
from collections.abc import Mapping
from typing import Any

from evaluation import errors
from evaluation.json_types import JsonObject, JsonValue

RESULT_FIELDS = {
    "name": "what the evaluator measures",
    "detail": "by episode, or totals; the evaluator chooses",
    "value": "the score, null if no episode was recorded",
    "error": "exception that ended the case early, as `type` and `message`; null for none",
}
"""Fields of a result in JSON."""

LONGEST_TEXT = 2000
DEEPEST = 50
MOST_BITS = 14_000  # Python writes at most 4,300 digits


class EvaluationResult:
    """Summary of all episodes of an evaluator.

    Args:
      value: the score; None if there is none.
      error: exception that ended the evaluation, None if nothing did.
      name: of the measure.
      results: details, anything; the key "detail" in JSON.
    """

    def __init__(
        self,
        value: object,
        error: BaseException | None,
        name: str = "score",
        results: object = None,
    ) -> None:
        self.name = name
        self.results = [] if results is None else results
        self.value = value
        self.error = error

    def get_json(self) -> JsonObject:
        """Return the fields `RESULT_FIELDS` as values of strict JSON."""
        value, error = plain(self.value), error_to_json(self.error)
        if value is None and self.value is not None and error is None:
            message = f"value is {text_of(self.value)}, which JSON has no number for"
            error = {"type": "ValueError", "message": message}
        return {
            "name": plain(self.name),
            "detail": plain(self.results),
            "value": value,
            "error": error,
        }

    def __str__(self) -> str:
        return str(self.get_json())


class TestResult:
    """Result of one test case.

    Args:
      case_id: of the case.
      result: of its evaluation.
    """

    __test__ = False  # not a test of pytest's

    def __init__(self, case_id: object, result: EvaluationResult) -> None:
        self.case_id = case_id
        self.result = result

    def get_json(self) -> JsonObject:
        """Return `case_id` and `result` as values of strict JSON."""
        return {"case_id": plain(self.case_id), "result": self.result.get_json()}

    def __str__(self) -> str:
        return f"<Case {self.case_id}> {self.result}"

    __repr__ = __str__


def error_to_json(error: BaseException | None) -> dict[str, str] | None:
    """Return the type and the message of an exception, None for none."""
    if error is None:
        return None
    return {"type": type(error).__name__, "message": _clean(errors.message_of(error).strip())}


def plain(value: Any, depth: int = 0) -> JsonValue:
    """Turn anything into values of strict JSON.

    Arrays become lists, keys become strings, a number that is not finite becomes None, and
    integers of more than `MOST_BITS` and other objects become text.
    """
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        bits = value.bit_length()
        return int(value) if bits <= MOST_BITS else f"a whole number of {bits} bits"
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, str):
        return _clean(value, longest=None)
    if depth < DEEPEST:
        if isinstance(value, Mapping):
            return {_key(key): plain(each, depth + 1) for key, each in value.items()}
        if isinstance(value, list | tuple):
            return [plain(each, depth + 1) for each in value]
        if callable(getattr(value, "tolist", None)):  # arrays and their scalars
            return plain(value.tolist(), depth + 1)
    return text_of(value)


def text_of(value: object) -> str:
    """Return the `repr` of any object, shortened."""
    try:
        return _clean(repr(value))
    except Exception:
        return f"<{type(value).__name__}>"


def _key(key: object) -> str:
    """Text of a key of any kind."""
    try:
        return _clean(str(key))
    except Exception:
        return f"<{type(key).__name__}>"


def _clean(text: str, longest: int | None = LONGEST_TEXT) -> str:
    """Escape lone surrogates, which JSON cannot carry, and shorten."""
    text = str(text).encode("utf-8", "backslashreplace").decode()
    return text if longest is None or len(text) <= longest else text[: longest - 3] + "..."
