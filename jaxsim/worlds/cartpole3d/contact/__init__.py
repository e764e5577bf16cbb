"""Contacts of blocks, cart, pole and walls.

`broadphase` bounces blocks off walls in closed form, and tests where that is not enough. `rows`
builds one row a contact. `single` resolves ticks with one contact, which `meeting` and `friction`
describe. `solver` resolves all contacts of up to four blocks by projected Gauss-Seidel, over rows
that `assembly` prepares. `crowd` does so for stacked slots, over the short lists of `candidates`.
"""
