"""``python -m aivle_grader``: `my_agent` graded with `my_test_suite`."""

from evaluation.grader.loading import load_agent, load_suite

if __name__ == "__main__":
    print(load_suite("my_test_suite").run(load_agent("my_agent")))
