"""Random routings of a mixture of experts: fused and unfused plans, and NumPy. Half of the mixtures
have elements of 16 bits, whose tokens are sorted by expert.

SINTER_TRIES=N draws N routings (24); SINTER_SEED=S others (7); SINTER_DEVICE=cuda runs the plans on
a GPU (cpu)."""

import os

import numpy as np

import sinter

MIXTURE = """
module @mixture {{
  symbol N in [1, 300]
  weight %gate_up : {dtype}[{experts}, {two_widths}, {hidden}] = file {{tensor = "gate_up"}}
  weight %down : {dtype}[{experts}, {hidden}, {width}] = file {{tensor = "down"}}
  entry @main(%x: {dtype}[N, {hidden}], %logits: f32[N, {experts}]) -> (%chosen, %y) {{
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
    """The same in float64: larger logits first, equal ones by position. Also the sums of the
    absolute values of all products."""
    chosen = np.argsort(-logits, axis=1, kind="stable")[:, :count]
    of_chosen = np.take_along_axis(logits, chosen, 1).astype(np.float64)
    weights = np.exp(of_chosen - of_chosen.max(1, keepdims=True))
    weights /= weights.sum(1, keepdims=True)


    def gated(x, gate_up):
        both = np.einsum("nd,nkfd->nkf", x.astype(np.float64), gate_up[chosen])
        return np.split(both, 2, axis=2)

    def weighted(gated, down):
        return np.einsum("nk,nkf,nkdf->nd", weights, gated, down[chosen])

    gate, up = gated(x, gate_up)
    most_gate, most_up = gated(np.abs(x), np.abs(gate_up))
    y = weighted(gate / (1 + np.exp(-gate)) * up, down)
    return chosen, y, weighted(most_gate * most_up, np.abs(down))


def run_on(device, plan, **arrays):
    """The results of a call, as NumPy arrays."""
    if device == "cpu":
        return plan.run(**arrays)
    import torch

    on_device = {name: torch.from_numpy(array).to(device) for name, array in arrays.items()}
    return {name: result.cpu().numpy() for name, result in plan.run(**on_device).items()}


def test_random_routings():
    tries, calls = int(os.environ.get("SINTER_TRIES", 24)), 8
    device = os.environ.get("SINTER_DEVICE", "cpu")
    random = np.random.default_rng(int(os.environ.get("SINTER_SEED", 7)))
    for _ in range((tries + calls - 1) // calls):
        experts = int(random.integers(1, 129))
        count = int(random.integers(1, min(experts, 8) + 1))
        small = bool(random.random() < 0.5)
        dtype, eps = (np.float16, 2.0**-11) if small else (np.float32, 2.0**-24)
        hidden, width = (int(n) for n in random.integers(1, 48, 2))
        if small:
            hidden, width = 8 * (hidden // 8 + 1), 8 * (width // 8 + 1)
        weights = {
            "gate_up": random.standard_normal((experts, 2 * width, hidden)).astype(dtype),
            "down": random.standard_normal((experts, hidden, width)).astype(dtype),
        }
        text = MIXTURE.format(
            dtype="f16" if small else "f32",
            experts=experts,
            count=count,
            hidden=hidden,
            width=width,
            two_widths=2 * width,
        )
        fused = sinter.compile(text, weights=weights)
        unfused = sinter.compile(text, weights=weights, fuse=False)
        assert len(fused.entry().steps) < len(unfused.entry().steps)
        for _ in range(calls):
            tokens = int(random.integers(1, 301))
            x = random.standard_normal((tokens, hidden)).astype(dtype)
            logits = random.standard_normal((tokens, experts), np.float32)
            if random.random() < 0.5:  # many are equal
                logits = np.round(logits)
            got, other = (run_on(device, plan, x=x, logits=logits) for plan in (fused, unfused))
            chosen, y, sizes = mixture(x, logits, weights["gate_up"], weights["down"], count)
            np.testing.assert_array_equal(got["chosen"], chosen)
            for name in ("chosen", "y"):
                assert got[name].tobytes() == other[name].tobytes()
            # A value depends on eight that are rounded, and on float32 sums; the slope of SiLU is
            # at most 1.1.
            bound = 1.1 * (8 * eps + (2 * hidden + width + count) * 2.0**-24) * sizes
            assert (np.abs(got["y"] - y) <= bound).all()
