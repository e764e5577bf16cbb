"""The engine of pure agents: lanes that play lists of episodes one after the other.

| module | subject |
| --- | --- |
| `lists` | lists of rounds to play, and rows of results |
| `work` | the interface of an environment for the engine |
| `worlds` | environments with their tables of parameters |
| `minds` | an agent's functions over lanes |
| `state` | state of lanes and lifetimes between steps |
| `steps` | an action and the cheapest attempt; attempts with more effort |
| `turns` | the change from one round to the next |
| `traced` | functions that are traced once |
| `banks` | leaves of lanes in few arrays |
| `program` | the compiled loops over steps and turns |
| `kept` | programs that are traced once and kept in a folder |
| `crew` | distribution of lifetimes over cores and accelerators |
"""
