"""Sweeps: many runs over axes, planned once, played anywhere, joined into one table.

    plan = sweep.plan("sweep.toml", "runs/gravity")
    sweep.run(plan)                                   # in this process
    sweep.run(plan, executor=client.get_executor())   # or any executor of concurrent.futures' shape
    sweep.results(plan).to_pandas()

docs/sweeps.md is the tutorial.
"""

from typing import TYPE_CHECKING

from evaluation.lazy import exports

if TYPE_CHECKING:
    from evaluation.sweep.interface import Results as Results
    from evaluation.sweep.interface import load as load
    from evaluation.sweep.interface import merge as merge
    from evaluation.sweep.interface import plan as plan
    from evaluation.sweep.interface import results as results
    from evaluation.sweep.interface import run as run
    from evaluation.sweep.interface import status as status

__getattr__, __dir__ = exports(__name__)
