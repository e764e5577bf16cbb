"""Suites of test cases."""

from collections.abc import Sequence

from evaluation.grader.agent import CreateAgent
from evaluation.grader.cases import TestCase
from evaluation.grader.results import EvaluationResult, TestResult, plain
from evaluation.json_types import JsonObject


class TestSuite:
    """Test cases that grade one submission.

    Args:
      suite_id: name or number of the suite.
      cases: played in this order; there may be none.

    Attributes:
      test_cases: as given.
      results: of the last run, with the exceptions themselves; empty before it.

    Raises:
      TypeError: a case is not a `TestCase`.
    """

    __test__ = False  # not a test of pytest's

    def __init__(self, suite_id: object, cases: Sequence[TestCase]) -> None:
        for place, case in enumerate(cases):
            if not isinstance(case, TestCase):
                raise TypeError(
                    f"cases[{place}] is a {type(case).__name__}; it must be an object of a "
                    "subclass of TestCase"
                )
        self.suite_id = suite_id
        self.test_cases = list(cases)
        self.results: list[TestResult] = []

    def run(self, create_agent: CreateAgent) -> JsonObject:
        """Grade a submission.

        An error of agent, environment or evaluator does not end it: the error is in the case's
        result, and the next case follows.

        Args:
          create_agent: called once for each case with its `agent_init`.

        Returns:
          ``{"suite_id": ..., "results": [{"case_id": ..., "result": {...}}, ...]}``, values of
          strict JSON; the fields of a result are `results.RESULT_FIELDS`.
        """
        self.results = []
        for case in self.test_cases:
            case_id = getattr(case, "case_id", None)  # a subclass may not call its base's __init__
            self.results.append(TestResult(case_id, _evaluate(case, create_agent)))
        results = [result.get_json() for result in self.results]
        return {"suite_id": plain(self.suite_id), "results": results}


def _evaluate(case: TestCase, create_agent: CreateAgent) -> EvaluationResult:
    """Evaluate one case; any exception, also of a user's class, goes into the result."""
    try:
        result = case.evaluate(create_agent)
        if not isinstance(result, EvaluationResult):
            type_name = type(result).__name__
            raise TypeError(f"the result is a {type_name}; it must be an EvaluationResult")
        return result
    except (Exception, SystemExit) as error:
        return EvaluationResult(None, error)
