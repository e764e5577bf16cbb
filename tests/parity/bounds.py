"""How far one tick may be from the original, where it is not exact for a reason."""

# Blocks in a chain: the original's iteration stops early, corrections below 3e-4 m/s may be left.
PAIR = 9e-5
# The same among dozens of blocks, of which every island of contacts ends its iteration by itself.
CHAIN = 2e-4
# Largest errors of a tick in which a block hits cart or pole: cart velocity (m/s), pole rate across
# its axis (rad/s), block velocity (m/s). The original's collision detection has a relative
# tolerance of 1e-3; a float64 prototype of the same equations reaches just this.
HIT = (6e-3, 3.5e-2, 6e-3)
# Blocks on lines: friction turns the same error in the direction of a hit into more of a lean.
SLIDING_HIT = (6e-3, 6e-2, 6e-3)
