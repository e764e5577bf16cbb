"""The engine of pure agents: lanes that play lists of episodes one after the other.

| module | subject |
| --- | --- |
| `lists` | what is played, and the rows that come back |
| `work` | what the engine asks of an environment |
| `worlds` | environments with their tables of parameters |
| `minds` | an agent's functions over lanes |
| `state` | what is carried of lanes and lifetimes |
| `steps` | an action and the cheapest attempt; attempts with more effort |
| `turns` | from one round to the next |
| `traced` | functions that are traced once |
| `banks` | leaves of lanes in few arrays |
| `program` | the loops over all of it, compiled |
| `crew` | lifetimes dealt to threads and devices |
"""
