"""Throughput of the simulator and of its peers, measured in turn in one run: `jaxsim bench`.

Nothing is imported here: every program that is measured imports this package, and some need no JAX.
"""
