"""Train an agent on a syllabus and leave a log: step 4 of the 2019 document's sample workflow.

The other steps, with `learnkit` and `calc_metrics` from ``jaxsim shims``:

    python examples/l2m/train_ppo.py
    log_dir=$(ls -t -1 `python -m learnkit.info -get logdir` | head -1)
    python calc_metrics.py -syllabus_subtype=CL -log_dir=$log_dir

The log goes to $L2DATA/logs, or to l2data in the home directory where that is not set, and the
results to runs/train_ppo. With --resume a training that was interrupted goes on.
"""

import argparse
import sys
from pathlib import Path

from evaluation import cli
from evaluation.logs.home import data_folder

CL = Path(__file__).parents[1] / "syllabi" / "cl.json"


def main() -> int:
    """Play one lifetime of the syllabus; return the exit code."""
    parser = argparse.ArgumentParser(description="Train an agent on a syllabus and log it.")
    parser.add_argument("--syllabus", default=str(CL), metavar="FILE", help="(cl.json)")
    parser.add_argument("--agent", default="ppo", metavar="NAME", help="(ppo)")
    parser.add_argument("--seed", default="0", metavar="N", help="root of all randomness (0)")
    parser.add_argument("--out", default="runs/train_ppo", metavar="DIR", help="(runs/train_ppo)")
    parser.add_argument("--resume", action="store_true", help="go on where it was interrupted")
    given = parser.parse_args()
    words = ["run", given.syllabus, "--agent", given.agent, "--seed", given.seed]
    words += ["--lifetimes", "1", "--l2data", str(data_folder()), "--quiet", "--out", given.out]
    return cli.main([*words, "--resume" if given.resume else "--overwrite"])


if __name__ == "__main__":
    sys.exit(main())
