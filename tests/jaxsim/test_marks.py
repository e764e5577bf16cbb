"""The lanes that are found among marked ones are those that NumPy finds."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxsim.marks import marked


@pytest.mark.parametrize("lanes", [1, 31, 32, 96, 4096, 5000])
@pytest.mark.parametrize("share", [0.0, 0.01, 0.5, 1.0])
@pytest.mark.parametrize("platform", ["cpu", "gpu"])
def test_marks_are_found_in_order(
    lanes: int, share: float, platform: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jax, "default_backend", lambda: platform)
    flags = np.random.default_rng(lanes).random(lanes) < share
    expected = np.flatnonzero(flags)
    marks = marked(jnp.asarray(flags))
    places = np.asarray(marks.places(jnp.arange(lanes + 3, dtype=jnp.int32)))
    assert int(marks.number) == expected.size
    np.testing.assert_array_equal(places[: expected.size], expected)
    assert (places[expected.size :] >= lanes).all()


def test_a_rank_finds_its_mark_alone() -> None:
    flags = np.zeros(256, bool)
    flags[[5, 31, 32, 200]] = True
    marks = marked(jnp.asarray(flags))
    assert int(marks.places(jnp.asarray([3]))[0]) == 200
    assert int(marks.places(jnp.asarray([1]))[0]) == 31


@pytest.mark.parametrize(("platform", "loops"), [("cpu", True), ("gpu", False)])
def test_an_accelerator_searches_without_a_loop(
    platform: str, loops: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jax, "default_backend", lambda: platform)

    def places(flags: jax.Array) -> jax.Array:
        return marked(flags).places(jnp.arange(64, dtype=jnp.int32))

    program = jax.jit(places).lower(jnp.zeros(4096, bool)).as_text()
    assert ("stablehlo.while" in program) == loops
