"""An entry for few and for many tokens: its variants, and calls of any size."""

import numpy as np
import pytest

import sinter

PRODUCT = """module @m {
  symbol N in [1, 64]
  weight %w : f32[16, 32] = file {tensor = "w"}
  entry @main(%x: f32[N, 32]) -> (%y) {
    %p = linear %x, %w : f32[N, 16]
    %y = tanh %p : f32[N, 16]
  }
}
"""


@pytest.fixture(scope="module")
def compiled():
    return sinter.compile(PRODUCT, random_weights=1)


def test_variants_are_entries_of_one_name(compiled):
    assert list(compiled.entries) == [
        "main, N in [1, 1]",
        "main, N in [2, 8]",
        "main, N in [9, 64]",
    ]
    one, few, many = compiled.entries.values()
    assert one.name == few.name == many.name == "main"
    assert (few.range.symbol, few.range.low, few.range.high) == ("N", 2, 8)
    assert few.inputs == many.inputs == {"x": "f32[N, 32]"}
    assert [step.kind for step in few.steps] == ["kernel"]
    assert [step.kind for step in many.steps] == ["gemm", "kernel"]
    assert few.costs().launches == 1 and many.costs().launches == 2
    assert few.why("p", "y") and not many.why("p", "y")


def test_a_call_has_the_variant_of_its_size(compiled):
    weight = np.eye(16, 32, dtype=np.float32) * 0.5
    given = sinter.compile(PRODUCT, weights={"w": weight})
    session = given.session()
    for tokens in (1, 8, 9, 64, 3):
        x = np.linspace(-1, 1, tokens * 32, dtype=np.float32).reshape(tokens, 32)
        wanted = np.tanh(x @ weight.T)
        assert np.allclose(given.run(x=x), wanted, atol=1e-6)
        assert np.allclose(session.run(x=x), wanted, atol=1e-6)


def test_sizes_outside_of_a_variant_are_refused(compiled):
    few = compiled.entries["main, N in [2, 8]"]
    assert few.costs({"N": 8}).moved_bytes > few.costs({"N": 2}).moved_bytes
    with pytest.raises(sinter.SinterError, match="N is 9"):
        few.costs({"N": 9})
    with pytest.raises(sinter.SinterError, match="N is 65"):
        compiled.run(x=np.zeros((65, 32), dtype=np.float32))
