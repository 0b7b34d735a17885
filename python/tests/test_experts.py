"""Random routings of a mixture of experts: fused and unfused plans, and NumPy.

SINTER_TRIES=N draws N routings (24); SINTER_SEED=S others (7)."""

import os

import numpy as np

import sinter

MIXTURE = """
module @mixture {{
  symbol N in [1, 300]
  weight %gate_up : f32[{experts}, {two_widths}, {hidden}] = file {{tensor = "gate_up"}}
  weight %down : f32[{experts}, {hidden}, {width}] = file {{tensor = "down"}}
  entry @main(%x: f32[N, {hidden}], %logits: f32[N, {experts}]) -> (%chosen, %y) {{
    %chosen = top_k %logits {{count = {count}}}
    %of_chosen = gather %logits, %chosen {{axis = 1}}
    %weights = softmax %of_chosen
    %gu = expert_linear %x, %gate_up, %chosen
    %g = slice %gu {{axis = 2, begin = 0, size = {width}}}
    %u = slice %gu {{axis = 2, begin = {width}, size = {width}}}
    %s = silu %g
    %act = mul %s, %u
    %d = expert_linear %act, %down, %chosen
    %y = expert_sum %d, %weights
  }}
}}
"""


def mixture(x, logits, gate_up, down, count):
    """The same in float64: larger logits first, equal ones by position."""
    chosen = np.argsort(-logits, axis=1, kind="stable")[:, :count]
    of_chosen = np.take_along_axis(logits, chosen, 1).astype(np.float64)
    weights = np.exp(of_chosen - of_chosen.max(1, keepdims=True))
    weights /= weights.sum(1, keepdims=True)
    gated = np.einsum("nd,nkfd->nkf", x.astype(np.float64), gate_up[chosen])
    gate, up = np.split(gated, 2, axis=2)
    results = np.einsum("nkf,nkdf->nkd", gate / (1 + np.exp(-gate)) * up, down[chosen])
    return chosen, (weights[..., None] * results).sum(1)


def test_random_routings():
    tries, calls = int(os.environ.get("SINTER_TRIES", 24)), 8
    random = np.random.default_rng(int(os.environ.get("SINTER_SEED", 7)))
    for _ in range((tries + calls - 1) // calls):
        experts = int(random.integers(1, 129))
        count = int(random.integers(1, min(experts, 8) + 1))
        hidden, width = (int(n) for n in random.integers(1, 48, 2))
        weights = {
            "gate_up": random.standard_normal((experts, 2 * width, hidden), np.float32),
            "down": random.standard_normal((experts, hidden, width), np.float32),
        }
        text = MIXTURE.format(
            experts=experts, count=count, hidden=hidden, width=width, two_widths=2 * width
        )
        fused = sinter.compile(text, weights=weights)
        unfused = sinter.compile(text, weights=weights, fuse=False)
        assert len(fused.entry().steps) < len(unfused.entry().steps)
        for _ in range(calls):
            tokens = int(random.integers(1, 301))
            x = random.standard_normal((tokens, hidden), np.float32)
            logits = random.standard_normal((tokens, experts), np.float32)
            if random.random() < 0.5:  # many are equal
                logits = np.round(logits)
            got, other = (plan.run(x=x, logits=logits) for plan in (fused, unfused))
            chosen, y = mixture(x, logits, weights["gate_up"], weights["down"], count)
            np.testing.assert_array_equal(got["chosen"], chosen)
            for name in ("chosen", "y"):
                assert got[name].tobytes() == other[name].tobytes()
            np.testing.assert_allclose(got["y"], y, rtol=1e-4, atol=1e-4 * np.abs(y).max())
