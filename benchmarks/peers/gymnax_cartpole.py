"""gymnax's CartPole-v1, scanned with its auto-reset and random actions: a lightweight reference.

python -m benchmarks.peers.gymnax_cartpole 2
"""

from dataclasses import dataclass
from typing import Any

from evaluation.bench.program import missing, serve, timed
from evaluation.bench.rate import Rate
from evaluation.json_types import JsonObject
from jaxsim.pytrees import Tree

LANES, STEPS = 16_384, 200  # of one call


@dataclass
class GymnaxPeer:
    """A compiled call, which continues where the last one ended."""

    call: Any = None
    carry: Tree = None

    def prepare(self, workload: str) -> JsonObject:
        """Compile the scan."""
        try:
            import gymnax
        except ModuleNotFoundError as error:
            raise missing("gymnax", "gymnax") from error
        import jax

        env, params = gymnax.make("CartPole-v1")
        step, sample = (
            jax.vmap(env.step, (0, 0, 0, None)),
            jax.vmap(env.action_space(params).sample),
        )

        def one(carry: Tree, _: Any) -> Any:
            key, state = carry
            key, acting, stepping = jax.random.split(key, 3)
            action = sample(jax.random.split(acting, LANES))
            state = step(jax.random.split(stepping, LANES), state, action, params)[1]
            return (key, state), None

        key = jax.random.key(0)
        state = jax.vmap(env.reset, (0, None))(jax.random.split(key, LANES), params)[1]
        self.carry = key, state
        self.call = jax.jit(lambda carry: jax.lax.scan(one, carry, None, STEPS)[0])
        self._play()
        return {"lanes": LANES, "device": jax.devices()[0].device_kind}

    def measure(self, workload: str, seconds: float) -> Rate:
        """Call repeatedly."""
        return timed(self._play, seconds)

    def _play(self) -> int:
        import jax

        self.carry = jax.block_until_ready(self.call(self.carry))
        return LANES * STEPS


if __name__ == "__main__":
    serve(GymnaxPeer())
