"""Renew the generated islands of pages from code and from what was measured.

python -m tools.pages
python -m tools.pages docs/levels.md docs/novelty.md
"""

import argparse
from collections.abc import Callable, Mapping
from pathlib import Path

from tools import (
    compatibility_page,
    coverage_page,
    fuzz_page,
    gpu_page,
    grader_page,
    gvgai_page,
    identification_page,
    l2metrics_page,
    learning_page,
    levels_page,
    metrics_page,
    noise_page,
    novelty_page,
    open_world_page,
    parity_page,
    performance_page,
    profile_page,
    requirements_page,
    sailon_control,
    sailon_detection,
    sciencebirds_page,
    scores_page,
    siege_page,
)
from tools.islands import Islands, write

ROOT = Path(__file__).parents[1]
PAGES: Mapping[str, Callable[[], Islands]] = {
    "README.md": performance_page.islands_of_readme,
    "docs/agents.md": noise_page.islands,
    "docs/compatibility.md": compatibility_page.islands,
    "docs/coverage.md": coverage_page.islands,
    "docs/fuzz.md": fuzz_page.islands,
    "docs/gpu.md": gpu_page.islands,
    "docs/grader.md": grader_page.islands,
    "docs/guide.md": learning_page.islands_of_guide,
    "docs/gvgai.md": gvgai_page.islands,
    "docs/identification.md": identification_page.islands,
    "docs/l2metrics.md": l2metrics_page.islands,
    "docs/learning_results.md": learning_page.islands,
    "docs/levels.md": levels_page.islands,
    "docs/metrics.md": metrics_page.islands,
    "docs/novelty.md": novelty_page.islands,
    "docs/open-world.md": open_world_page.islands,
    "docs/parity.md": parity_page.islands,
    "docs/performance.md": performance_page.islands,
    "docs/profile.md": profile_page.islands,
    "docs/requirements.md": requirements_page.islands,
    "docs/sailon.md": lambda: {**sailon_control.islands(), **sailon_detection.islands()},
    "docs/sciencebirds.md": sciencebirds_page.islands,
    "docs/scores.md": scores_page.islands,
    "docs/siege.md": siege_page.islands,
}
"""Function that makes the islands of each page."""


def main() -> None:
    """Write the islands of the named pages, or of all."""
    parser = argparse.ArgumentParser(description="Renew the generated islands of pages.")
    parser.add_argument("pages", nargs="*", metavar="PAGE", help=f"{', '.join(PAGES)} (all)")
    names = parser.parse_args().pages or list(PAGES)
    if unknown := sorted(set(names) - set(PAGES)):
        parser.error(f"no islands are made for {', '.join(unknown)}; there are {', '.join(PAGES)}")
    for name in names:
        write(ROOT / name, PAGES[name]())


if __name__ == "__main__":
    main()
