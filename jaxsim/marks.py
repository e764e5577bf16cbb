"""Marked lanes as bits, so that the K-th of them is found in a few operations.

A running count over 32,768 lanes takes XLA:CPU 0.3 ms, and a round of a rollout needs it several
times. A count over words of 32 bits and a search in one word take a tenth.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxsim import backend

WORD = 32


class Marks(NamedTuple):
    """Mask of lanes with their ranks; see `marked`."""

    words: jax.Array  # (W,) uint32, a bit for each lane, the lowest first
    before: jax.Array  # (W,) int32, marks up to the end of each word

    @property
    def number(self) -> jax.Array:
        """Number of marks, () int32."""
        return self.before[-1]

    def places(self, ranks: jax.Array) -> jax.Array:
        """Indices of the marked lanes with the given ranks.

        Args:
          ranks: (K,) int32, 0 for the first mark.

        Returns:
          (K,) int32; for a rank without a mark a number past the end.
        """
        # Unrolled, the search is one kernel; its loop starts four for each bit of the result.
        method = "scan" if backend.on_cpu() else "scan_unrolled"
        place = jnp.searchsorted(self.before, ranks, side="right", method=method)
        place = place.astype(jnp.int32)
        word = self.words.at[place].get(mode="clip")
        within = _ones(word) + ranks - self.before.at[place].get(mode="clip")
        start = place * WORD
        for bits in (16, 8, 4, 2, 1):
            low = _ones(word & jnp.uint32((1 << bits) - 1))
            above = within >= low
            within = within - jnp.where(above, low, 0)
            word = jnp.where(above, word >> bits, word)
            start = start + jnp.where(above, bits, 0)
        return jnp.where(ranks < self.number, start, WORD * self.words.shape[0])


def marked(flags: jax.Array) -> Marks:
    """Mark lanes, (L,) bool."""
    padded = jnp.pad(flags, (0, -flags.shape[0] % WORD)).reshape(-1, WORD)
    bits = padded.astype(jnp.uint32) << jnp.arange(WORD, dtype=jnp.uint32)
    words = jnp.sum(bits, axis=1, dtype=jnp.uint32)
    return Marks(words, jnp.cumsum(_ones(words), dtype=jnp.int32))


def _ones(word: jax.Array) -> jax.Array:
    return jax.lax.population_count(word).astype(jnp.int32)
