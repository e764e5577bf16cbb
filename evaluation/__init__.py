"""Evaluation protocols over one schedule, two engines and one table of records.

| module | subject |
| --- | --- |
| `cli` | the `jaxsim` command |
| `arguments` | options that several commands share |
| `catalogue` | `jaxsim tasks`, `levels` and `novelties` |
| `schedule` | which episodes of which tasks are played |
| `tasks` | environments and parameters of a schedule |
| `agents` | agents by name or from Python files |
| `scanner` | the engine for pure agents |
| `session` | one lifetime, one decision at a time |
| `addresses` | checks of addresses of servers and clients |
| `abreast` | many lifetimes with agents on the host |
| `records` | the table of results |
| `metrics` | metrics as pure functions |
| `report` | reports as JSON, tables, plots and HTML |
| `logs` | readers and writers of performance logs |
| `checkpoints` | saving and resuming of long runs |
| `evaluate` | `jaxsim evaluate`: agents on levels |
| `train` | `jaxsim train`: learning curves |
| `l2m` | lifelong learning by syllabi |
| `sailon` | novelty experiments of SAIL-ON |
| `sciencebirds` | trials of the Science Birds protocol |
| `gvgai` | the learning track of GVGAI |
| `grader` | grading of submitted agents |
| `sweep` | many runs over axes |
| `bench` | `jaxsim bench`: throughput |
| `view` | `jaxsim view`: episodes as pages and videos |
| `shims` | packages under the names of other tools |
| `calc_metrics` | `python -m evaluation.calc_metrics` of the 2019 framework |
| `l2metrics2019` | `python -m evaluation.l2metrics2019` of the 2019 framework |
| `info` | `python -m evaluation.info`: where logs are |
| `cache` | the cache of compiled programs |
| `processor` | JAX on the processor, for commands |
| `memory` | refusal of runs that exceed the memory |
| `files` | atomic files, and directories that are kept |
| `difficulties` | names of the difficulties of a level |
| `positions` | line and column of a JSON value |
| `json_types` | names of the values that JSON has |
| `clock` | clocks that tests can script |
| `errors` | errors of foreign code as text |
| `closing` | base class of objects with `close` |
| `lazy` | public names, imported at first use |
"""

from importlib.metadata import PackageNotFoundError, version

try:
    __version__ = version("jaxsim-novelty")
except PackageNotFoundError:  # a source tree that was never installed
    __version__ = "0+unknown"

__all__ = ["__version__"]
