"""Sweeps: many runs over axes, planned once, played anywhere, joined into one table.

    plan = sweep.plan("sweep.toml", "runs/gravity")
    sweep.run(plan)                                   # in this process
    sweep.run(plan, executor=client.get_executor())   # or any executor of concurrent.futures' shape
    sweep.results(plan).to_pandas()

docs/sweeps.md is the tutorial.

| module | subject |
| --- | --- |
| `interface` | sweeps from Python |
| `commands` | the parser of `jaxsim sweep` |
| `handlers` | handlers of its commands |
| `document` | the sweep file |
| `axes` | axes: names with computed values |
| `grid` | cell numbers, packs and units |
| `bases` | base commands of a sweep |
| `planning` | makes plans and sizes their units |
| `plans` | plans as self-contained folders |
| `playing` | plays units, with retries |
| `process` | settings of a process that plays units |
| `notes` | notes on running processes and failed units |
| `store` | result files of units |
| `progress` | progress of a sweep, from file names |
| `merging` | results of all units in two tables |
| `tables` | a metric over one or two axes |
| `means` | means over cells, with intervals |
| `report` | the report of a sweep |
| `plots` | pictures of tables |
| `launch` | job files for other schedulers |
| `submitting` | submission of units through submitit |
"""

from typing import TYPE_CHECKING

from evaluation.lazy import exports

if TYPE_CHECKING:
    from evaluation.sweep.interface import SweepResults as SweepResults
    from evaluation.sweep.interface import load as load
    from evaluation.sweep.interface import merge as merge
    from evaluation.sweep.interface import plan as plan
    from evaluation.sweep.interface import results as results
    from evaluation.sweep.interface import run as run
    from evaluation.sweep.interface import status as status

__getattr__, __dir__ = exports(__name__)
