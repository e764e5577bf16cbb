"""Throughput of the simulator and of its peers, measured in turn in one run: `jaxsim bench`.

Nothing is imported here: every program that is measured imports this package, and some need no JAX.

| module | subject |
| --- | --- |
| `run` | one run: preparation, then rounds |
| `workloads` | cells of the novelty catalogue |
| `program` | the protocol of a measured program |
| `process` | client of such a program |
| `ours` | whole episodes of a pure agent |
| `single` | one episode at a time |
| `camera` | pictures of level 200 |
| `rule` | the agent `pd` on plain numbers |
| `peers` | other simulators |
| `settings` | settings of our own program |
| `rate` | throughput of one measurement |
| `result` | rows of measurements, and their ratios |
| `show` | tables, progress and a plot |
| `commands` | `jaxsim bench` |
"""
