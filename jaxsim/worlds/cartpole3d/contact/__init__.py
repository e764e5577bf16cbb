"""Contacts of blocks, cart, pole and walls.

`broadphase` bounces blocks off walls in closed form, and tests where that is not enough. `rows`
builds one row a contact. `single` resolves ticks with one contact, by `meeting` and `friction`.
`solver` resolves all contacts of up to four blocks by projected Gauss-Seidel, over the rows of
`assembly`. `crowd` does so for stacked slots, over the short lists of `candidates`.
"""
