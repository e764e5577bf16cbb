"""Contacts of blocks, cart, pole and walls.

| module | subject |
| --- | --- |
| `broadphase` | walls in closed form, and conservative contact tests |
| `rows` | contact rows with targets for velocity changes |
| `single` | ticks with one contact, by `meeting` and `friction` |
| `meeting` | one isolated contact without friction |
| `friction` | one isolated contact with friction |
| `solver` | all contacts of up to four blocks, by projected Gauss-Seidel |
| `assembly` | all contact rows of a tick |
| `crowd` | the same for stacked slots, by `candidates` |
| `candidates` | short lists of blocks that may touch |
"""
