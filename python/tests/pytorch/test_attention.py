"""scaled_dot_product_attention reaches Sinter as one op, whatever kernel eager chooses.

With a GPU the forms run there, with each of its kernels."""

from __future__ import annotations

import contextlib
from typing import Any, Callable, Iterator
from unittest import mock

import pytest
import sinter.pytorch
import torch
import torch.nn.functional as F
from beside_eager import compiled, eager_ops, reset
from sinter.pytorch.graphs import attention_call
from sinter.pytorch import backend, export
from test_layer_gradients import compare
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel

attend = F.scaled_dot_product_attention
randn = torch.randn
ATTENTION = (torch.ops.sinter.attention.default, torch.ops.sinter.attention_with_log_sum.default)
BACKWARD = (torch.ops.sinter.attention_backward.default, torch.ops.sinter.attention_gradients.default)
HALF = torch.bfloat16

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
KERNELS = [None, SDPBackend.MATH, SDPBackend.FLASH_ATTENTION]
KERNELS += [SDPBackend.EFFICIENT_ATTENTION, SDPBackend.CUDNN_ATTENTION] if DEVICE == "cuda" else []


def using(kernel: SDPBackend | None):
    return sdpa_kernel(kernel) if kernel is not None else contextlib.nullcontext()


@contextlib.contextmanager
def recorded_nodes() -> Iterator[list]:
    """The nodes of all graphs that are compiled in the context, as they stand before they are cut."""
    nodes: list = []

    def compile_aten(module, *args, **kwargs):
        nodes.extend(node for node in module.graph.nodes if node.op == "call_function")
        return real(module, *args, **kwargs)

    real = backend.compile_aten
    with mock.patch.object(backend, "compile_aten", compile_aten):
        yield nodes


def count_of(nodes: list, *targets: Any) -> int:
    return sum(node.target in targets for node in nodes)


def kernels_in(nodes: list) -> list[str]:
    """Ops that compute attention, or softmax, in another way."""
    return [str(node.target) for node in nodes
            if "dot_product" in str(node.target) or "softmax" in str(node.target)]


def named(**options: Any) -> Callable:
    return lambda *args: attend(*args, **options)


def heads_last(function: Callable = attend) -> Callable:
    """q, k and v [B, S, H, D], as models have them."""
    return lambda *args: function(*(x.transpose(1, 2) for x in args))


PLAIN = ((2, 4, 3, 8), (2, 4, 5, 8), (2, 4, 5, 6))
SQUARE = ((2, 4, 5, 8),) * 3


def row_of_infinity() -> torch.Tensor:
    return torch.zeros(3, 5).index_fill(0, torch.tensor([1]), -torch.inf)


# name -> (function, shapes or tensors of its arguments)
FORMS: dict[str, tuple[Callable, tuple]] = {
    "plain": (attend, PLAIN),
    "aten": (torch.ops.aten.scaled_dot_product_attention.default, PLAIN),
    "keywords": (lambda q, k, v: attend(value=v, key=k, query=q, scale=0.3), PLAIN),
    "positional": (lambda q, k, v: attend(q, k, v, None, 0.0, True), SQUARE),
    "causal, more keys": (named(is_causal=True), PLAIN),
    "causal, fewer keys": (named(is_causal=True), (SQUARE[0], (2, 4, 3, 8), (2, 4, 3, 8))),
    "grouped": (named(enable_gqa=True), ((2, 4, 3, 8), (2, 2, 5, 8), (2, 2, 5, 6))),
    "grouped, two counts": (named(enable_gqa=True), ((2, 4, 3, 8), (2, 2, 5, 8), (2, 1, 5, 6))),
    "heads last": (heads_last(), ((2, 5, 4, 8),) * 3),
    "heads last, view": (lambda *x: heads_last()(*x).transpose(1, 2).reshape(2, 5, 32),
                         ((2, 5, 4, 8),) * 3),
    "parts of one tensor": (lambda x: attend(*x.unflatten(-1, (3, 4, 8)).permute(2, 0, 3, 1, 4)),
                            ((2, 5, 96),)),
    "steps": (lambda x: attend(x[:, :, ::2], x[:, :, 1:4], x[:, :, :3]), ((2, 4, 6, 8),)),
    "bool mask": (attend, (*PLAIN, torch.arange(30).reshape(2, 1, 3, 5) % 4 > 0)),
    "bool mask, row of no key": (attend, (*PLAIN, (torch.arange(3) > 0)[:, None].expand(3, 5))),
    "mask": (attend, (*PLAIN, (4, 3, 5))),
    "mask of one column": (attend, (*PLAIN, (3, 1))),
    "mask, row of no key": (attend, (*PLAIN, row_of_infinity())),
    "2 axes": (attend, ((3, 8), (5, 8), (5, 6))),
    "3 axes": (attend, ((4, 3, 8), (4, 5, 8), (4, 5, 6))),
    "3 axes, mask": (attend, ((4, 3, 8), (4, 5, 8), (4, 5, 6), (4, 3, 5))),
    "3 axes, grouped": (named(enable_gqa=True), ((4, 3, 8), (2, 5, 8), (2, 5, 6))),
    "5 axes, mask": (attend, ((2, 3, 4, 3, 8), (2, 3, 4, 5, 8), (2, 3, 4, 5, 6), (2, 1, 4, 3, 5))),
    "5 axes, mask of 4": (attend, ((2, 3, 4, 3, 8), (2, 3, 4, 5, 8), (2, 3, 4, 5, 6), (3, 1, 3, 5))),
    "one batch of keys": (attend, ((2, 4, 3, 8), (1, 4, 5, 8), (1, 4, 5, 6))),
    "one head of keys": (attend, ((2, 4, 3, 8), (2, 1, 5, 8), (2, 1, 5, 6))),
    "one head of queries": (attend, ((2, 1, 3, 8), (2, 4, 5, 8), (2, 4, 5, 6))),
    "keys without a batch": (attend, ((2, 4, 3, 8), (4, 5, 8), (4, 5, 6))),
    "no keys": (attend, ((1, 4, 3, 8), (1, 4, 0, 8), (1, 4, 0, 6))),
    "no queries": (attend, ((1, 4, 0, 8), (1, 4, 3, 8), (1, 4, 3, 6))),
    "empty batch": (attend, ((0, 4, 3, 8),) * 3),
    "no width": (attend, ((1, 4, 3, 0), (1, 4, 5, 0), (1, 4, 5, 6))),
    "checkpoint": (lambda q, k, v: torch.utils.checkpoint.checkpoint(attend, q, k, v,
                                                                     use_reentrant=False), PLAIN),
}


def arguments_of(given: tuple, dtype: torch.dtype, device: str) -> list[torch.Tensor]:
    torch.manual_seed(1)
    tensors = [randn(x) if isinstance(x, tuple) else x for x in given]
    return [x.to(device, dtype if x.is_floating_point() else None) for x in tensors]


def trained(function: Callable, arguments: list[torch.Tensor]) -> tuple[list, list, list]:
    """(results, gradients of the operands; of a mask of numbers too if it has the type of a shape)"""
    leaves = [x.detach().clone().requires_grad_(x.is_floating_point()) for x in arguments]
    result = function(*leaves)
    torch.manual_seed(2)
    result.backward(randn(result.shape).to(result))
    return [result.detach()], [x.grad for x in leaves], []


# Each kernel of the CPU that a user chooses is tried in one type, the kernel that torch chooses in both.
CHOICES = [(dtype, kernel) for dtype in (torch.float32, HALF) for kernel in KERNELS
           if DEVICE == "cuda" or kernel in (None, SDPBackend.MATH if dtype == torch.float32 else
                                             SDPBackend.FLASH_ATTENTION)]


@pytest.mark.parametrize("dtype, kernel", CHOICES, ids=str)
@pytest.mark.parametrize("form", FORMS)
def test_form(form: str, dtype: torch.dtype, kernel: SDPBackend | None) -> None:
    function, given = FORMS[form]
    arguments = arguments_of(given, dtype, DEVICE)
    reset()
    with using(kernel):
        try:
            eager = trained(function, arguments)
        except RuntimeError as error:  # the kernel does not take the form
            pytest.skip(str(error).split("\n")[0])
        with recorded_nodes() as nodes:
            ours = trained(compiled(function), arguments)
    exact = trained(function, [x.double() if x.is_floating_point() else x for x in arguments])
    compare(ours, eager, exact, [str(i) for i in range(len(arguments))], dtype)
    # The gradient by kernels reads the result, which a checkpoint computes again.
    again = form == "checkpoint" and dtype == HALF
    assert (count_of(nodes, *ATTENTION), count_of(nodes, *BACKWARD)) == (1 + again, 1)
    is_learned = len(given) > 3 and arguments[3].is_floating_point()
    assert kernels_in(nodes) == (["aten._softmax.default"] if is_learned else [])


@pytest.mark.parametrize("kernel", KERNELS[:3], ids=str)
def test_layout_of_the_result_is_that_of_eagers_kernel(kernel: SDPBackend | None) -> None:
    x = randn(2, 5, 4, 8, device=DEVICE, dtype=HALF)
    reset()
    with using(kernel), torch.no_grad():
        function = heads_last()
        assert compiled(function)(x, x, x).stride() == function(x, x, x).stride()


def test_gradients_of_a_call_without_gradients_are_not_computed() -> None:
    reset()
    x = randn(*SQUARE[0])
    with recorded_nodes() as nodes:
        compiled(attend)(x, x, x)
    assert (count_of(nodes, *ATTENTION), count_of(nodes, *BACKWARD)) == (1, 0)


def test_sizes_that_change() -> None:
    reset()
    function = lambda q, k, v: attend(q, k, v, is_causal=True)
    with recorded_nodes() as nodes:
        ours = compiled(function, dynamic=True)
        for batch, tokens, keys in ((2, 5, 7), (3, 9, 9), (4, 6, 3)):
            q, k = randn(batch, 4, tokens, 8), randn(batch, 4, keys, 8)
            torch.testing.assert_close(ours(q, k, k), function(q, k, k))
    assert count_of(nodes, *ATTENTION) == 1


# ---- autocast

def test_autocast_casts_the_operands() -> None:
    def function(q, mask):
        with torch.autocast("cpu", HALF):
            return attend(q, q, q, mask)

    q, mask = randn(*SQUARE[0]), randn(5, 5)
    for ours, ambient in ((function, False), (lambda q, mask: attend(q, q, q, mask), True)):
        reset()
        with recorded_nodes() as nodes, torch.autocast("cpu", HALF, enabled=ambient):
            result = compiled(ours)(q, mask)
        (node,) = [node for node in nodes if node.target in ATTENTION]
        assert {operand.meta["val"].dtype for operand in node.args[:4]} == {HALF}
        assert result.dtype == HALF
        bound = 8 * torch.finfo(HALF).eps  # of sums of 5 terms
        torch.testing.assert_close(result.double(), attend(*[q.double()] * 3, mask.double()),
                                   rtol=bound, atol=bound)


def test_autocast_casts_operands_of_several_types() -> None:
    q, k = randn(*SQUARE[0]), randn(*SQUARE[0]).to(HALF)
    reset()
    with recorded_nodes() as nodes, torch.autocast("cpu", HALF):
        assert compiled(attend)(q, k, k).dtype == HALF
    assert count_of(nodes, *ATTENTION) == 1


# ---- layers

@pytest.mark.parametrize("masked, kernel", [(False, None), (True, None), (True, SDPBackend.MATH),
                                            (False, SDPBackend.FLASH_ATTENTION)], ids=str)
@pytest.mark.parametrize("kind", [nn.MultiheadAttention, nn.TransformerEncoderLayer])
def test_layer(kind: type, masked: bool, kernel: SDPBackend | None) -> None:
    torch.manual_seed(0)
    layer = kind(16, 4, batch_first=True) if kind is nn.MultiheadAttention \
        else kind(16, 4, 32, dropout=0.0, batch_first=True)
    mask = torch.full((5, 5), -torch.inf).triu(1) if masked else None
    call = (lambda x: layer(x, x, x, need_weights=False, attn_mask=mask)[0]) \
        if kind is nn.MultiheadAttention else (lambda x: layer(x, src_mask=mask))
    x = randn(2, 5, 16)
    for is_training in (True, False):  # without gradients the encoder's layer is an op of its own
        layer.train(is_training)
        reset()
        with using(kernel), torch.set_grad_enabled(is_training):
            with recorded_nodes() as nodes:
                result = compiled(call)(x)
            assert count_of(nodes, *ATTENTION) == 1 and not kernels_in(nodes)
            torch.testing.assert_close(result, call(x), rtol=1e-5, atol=1e-5)
        assert eager_ops() == []


@pytest.mark.parametrize("is_norm_first", [False, True])
@pytest.mark.parametrize("mask", [
    {}, {"src_key_padding_mask": torch.arange(5).expand(2, 5) > 2},
    {"src_mask": torch.ones(5, 5).triu(1).bool()},
    {"src_mask": torch.ones(5, 5).triu(1).bool(),
     "src_key_padding_mask": torch.arange(10).reshape(2, 5) > 8}], ids=lambda mask: "+".join(mask))
def test_encoder_layer_as_one_op(mask: dict, is_norm_first: bool) -> None:
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(16, 4, 32, activation="gelu" if is_norm_first else "relu",
                                       batch_first=True, norm_first=is_norm_first).eval()
    reset()
    with torch.no_grad(), recorded_nodes() as nodes:
        x = randn(2, 5, 16)
        torch.testing.assert_close(compiled(lambda x: layer(x, **mask))(x), layer(x, **mask))
    assert count_of(nodes, *ATTENTION) == 1 and eager_ops() == []


def test_an_encoder_layer_adds_a_mask_of_numbers() -> None:
    """torch's op for the layer would take each number that is not 0 for a key that is not seen."""
    layer, x, mask = nn.TransformerEncoderLayer(16, 4, 32, batch_first=True).eval(), randn(2, 5, 16), \
        randn(5, 5)
    wanted = layer(x, src_mask=mask)  # with gradients, by its parts
    reset()
    with torch.no_grad():
        torch.testing.assert_close(compiled(lambda x: layer(x, src_mask=mask))(x), wanted.detach())


# ---- transforms of torch.func

def test_vmap() -> None:
    cases = ((lambda q, k, m: torch.vmap(lambda q: attend(q, k, k, m), in_dims=1)(q),
              ((2, 3, 4, 5, 8), (2, 4, 6, 8), (5, 6))),
             (lambda q, k, m: torch.vmap(lambda q, m: attend(q, k, k, m > 0), in_dims=(0, 2))(q, m),
              ((3, 2, 4, 5, 8), (2, 4, 6, 8), (5, 6, 3))),
             (lambda q, k, m: torch.vmap(lambda q, k: attend(q, k, k, m > 0))(q, k),
              ((3, 2, 4, 5, 8), (3, 2, 4, 6, 8), (2, 1, 5, 6))))
    for function, shapes in cases:
        arguments = arguments_of(shapes, torch.float32, "cpu")
        reset()
        with recorded_nodes() as nodes:
            torch.testing.assert_close(compiled(function)(*arguments), function(*arguments))
        assert count_of(nodes, *ATTENTION) == 1 and eager_ops() == []


def test_gradients_of_torch_func() -> None:
    loss = lambda q: attend(q, q * 2, q - 1, is_causal=True).square().sum()
    first = torch.func.grad(loss)
    second = torch.func.grad(lambda q: first(q).square().sum())
    for function, shape in ((first, SQUARE[0]), (torch.vmap(first), (3, *SQUARE[0])),
                            (second, (1, 2, 3, 4))):
        q = arguments_of((shape,), torch.float32, "cpu")[0]
        exact = arguments_of((shape,), torch.float64, "cpu")[0]
        reset()
        with sdpa_kernel(SDPBackend.MATH), recorded_nodes() as nodes:
            wanted, ours = function(exact), compiled(function)(q)
        bound = 64 * torch.finfo(torch.float32).eps * wanted.abs().max().item()
        torch.testing.assert_close(ours.double(), wanted, rtol=0, atol=bound)
        assert count_of(nodes, *ATTENTION) == 1


# ---- what is left to torch

def test_forward_derivatives_are_left_to_torch() -> None:
    q = randn(1, 2, 3, 4)
    function = lambda q: torch.func.jvp(lambda q: attend(q, q, q), (q,), (q * 3,))[1]
    reset()
    with sdpa_kernel(SDPBackend.MATH):
        torch.testing.assert_close(compiled(function)(q), function(q))


def test_dropout_is_left_to_torch() -> None:
    q = randn(*SQUARE[0])
    function = lambda q: attend(q, q, q, dropout_p=0.5)
    reset()
    with recorded_nodes() as nodes:
        torch.manual_seed(3)
        ours = compiled(function)(q)
    torch.manual_seed(3)
    torch.testing.assert_close(ours, function(q))
    assert count_of(nodes, *ATTENTION) == 0 and "aten.native_dropout.default" in eager_ops()


def test_float64_is_left_to_torch() -> None:
    q = randn(*SQUARE[0]).double()
    reset()
    torch.testing.assert_close(compiled(attend)(q, q, q), attend(q, q, q), rtol=1e-12, atol=1e-12)


def test_an_op_of_a_kernel_runs_in_eager_with_its_gradient() -> None:
    function = lambda *x: torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(*x)[0]
    arguments = arguments_of(SQUARE, torch.float32, "cpu")
    reset()
    for ours, wanted in zip(trained(compiled(function), arguments), trained(function, arguments)):
        torch.testing.assert_close(ours, wanted)


@pytest.mark.parametrize("arguments, text", [
    ((*PLAIN, (4, 5)), "Mismatching|must match|doesn't match|expanded size"),
    ((*PLAIN, torch.ones(3, 5, dtype=torch.int32)), "attn_mask dtype"),
    (((8,), (8,), (8,)), "2 dimensional"), (((2, 3), (2, 4), (2, 4)), "cannot be multiplied|shapes|a and b")])
def test_errors_are_torchs(arguments: tuple, text: str) -> None:
    given = arguments_of(arguments, torch.float32, "cpu")
    reset()
    with pytest.raises((RuntimeError, IndexError)):
        attend(*given)
    with pytest.raises(Exception, match=text):
        compiled(attend)(*given)


def test_the_op_is_torchs_again_after_a_compilation() -> None:
    op = torch.ops.aten.scaled_dot_product_attention.default
    before = dict(op.py_kernels)
    reset()
    q = randn(*SQUARE[0])
    compiled(attend)(q, q, q)
    with pytest.raises(Exception, match="mask"):
        compiled(attend)(q, q, q, torch.ones(5, 5, dtype=torch.int32))
    assert op.py_kernels == before


# ---- exported modules

class Heads(nn.Module):
    """Each form of a call once, and two layers."""

    def __init__(self) -> None:
        super().__init__()
        self.mixed = nn.MultiheadAttention(16, 4, batch_first=True)
        self.layer = nn.TransformerEncoderLayer(16, 4, 32, batch_first=True)

    def forward(self, x):
        q = x.unflatten(-1, (4, 4)).transpose(1, 2)
        mask = torch.ones(5, 5, dtype=torch.bool).tril()
        return (self.mixed(x, x, x, need_weights=False)[0], self.layer(x), attend(q, q, q, is_causal=True),
                attend(q, q, q, mask).transpose(1, 2).reshape(2, 5, 16),
                attend(q, q[:, :2], q[:, :2], enable_gqa=True), attend(q.flatten(0, 1), *[q.flatten(0, 1)] * 2))


def imported_nodes(source: Any, *args: Any) -> tuple[sinter.pytorch.TorchModel, list]:
    nodes: list = []

    def import_graph(graph, *args, **kwargs):
        nodes.extend(node for node in graph.nodes if node.op == "call_function")
        return real(graph, *args, **kwargs)

    real = export.import_graph
    with mock.patch.object(export, "import_graph", import_graph):
        return sinter.pytorch.from_torch(source, args), nodes


@pytest.mark.parametrize("kernel", [None, SDPBackend.MATH, SDPBackend.FLASH_ATTENTION], ids=str)
def test_exported_module(kernel: SDPBackend | None) -> None:
    torch.manual_seed(0)
    model, x = Heads().eval(), randn(2, 5, 16)
    with using(kernel), torch.no_grad():
        imported, nodes = imported_nodes(model, x)
        wanted = model(x)
    assert count_of(nodes, *ATTENTION) == 6 and not kernels_in(nodes)
    for ours, theirs in zip(imported.compile().run(x=x).values(), wanted, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-5)


def test_half_precision_becomes_the_op_of_the_ir() -> None:
    class Attend(nn.Module):
        def forward(self, q, k):
            return attend(q, k, k, enable_gqa=True)

    for kernel in (SDPBackend.MATH, SDPBackend.FLASH_ATTENTION):
        with using(kernel):
            text = sinter.pytorch.from_torch(
                Attend(), (randn(2, 4, 5, 16).to(HALF), randn(2, 2, 7, 16).to(HALF))).text
        assert " = attention " in text and "softmax" not in text


def test_a_mask_of_first_keys_and_a_window_becomes_a_range_and_a_sink() -> None:
    class Attend(nn.Module):
        def forward(self, q, k):
            row, column = torch.arange(q.shape[2])[:, None], torch.arange(k.shape[2])[None]
            mask = ((column < 4) | (column > row - 20)) & (column <= row)
            return attend(q, k, k, mask)

    q, k = randn(2, 4, 70, 16), randn(2, 4, 70, 16)
    length = torch.export.Dim("length", min=2, max=512)
    program = torch.export.export(Attend(), (q, k), dynamic_shapes=({2: length}, {2: length}))
    plan = sinter.pytorch.from_torch(program).compile()
    assert "sink = 4" in plan.optimized_text and "i1[" not in plan.optimized_text
    torch.testing.assert_close(torch.as_tensor(plan.run(q=q, k=k)), Attend()(q, k))


def test_a_program_that_has_the_op_of_a_kernel() -> None:
    class Attend(nn.Module):
        def forward(self, q, k, mask):
            attend_on_cpu = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
            return attend_on_cpu(q, k, k, attn_mask=mask)

    q, k, mask = randn(2, 4, 5, 8), randn(2, 4, 7, 8), randn(5, 7)
    imported, nodes = imported_nodes(Attend(), q, k, mask)
    assert count_of(nodes, *ATTENTION) == 1
    ours = imported.compile().run(q=q, k=k, mask=mask).values()
    for one, wanted in zip(ours, Attend()(q, k, mask), strict=True):
        torch.testing.assert_close(one, wanted)


def test_grouped_heads_whose_numbers_only_the_call_knows() -> None:
    reset()
    ours = compiled(lambda q, k: attend(q, k, k, enable_gqa=True), dynamic=True)
    with torch.no_grad():
        for heads, groups in ((6, 2), (8, 4), (9, 3)):
            q, k = randn(2, heads, 5, 8), randn(2, groups, 7, 8)
            torch.testing.assert_close(ours(q, k), attend(q, k, k, enable_gqa=True))
    assert eager_ops() == []


def test_grouped_heads_whose_numbers_only_the_call_knows_have_gradients() -> None:
    reset()
    ours = compiled(lambda q, k, v: attend(q, k, v, enable_gqa=True), dynamic=True)
    for heads, groups in ((6, 2), (8, 4), (9, 3)):
        given = [randn(2, heads, 5, 8), randn(2, groups, 7, 8), randn(2, groups, 7, 8)]
        gradients = []
        for function in (ours, lambda q, k, v: attend(q, k, v, enable_gqa=True)):
            leaves = [x.clone().requires_grad_() for x in given]
            function(*leaves).square().sum().backward()
            gradients.append([x.grad for x in leaves])
        torch.testing.assert_close(*gradients)
    assert eager_ops() == []


def test_heads_that_eager_pads_are_a_slice(monkeypatch) -> None:
    """As kernels of a GPU leave them: rows of 8 elements, of which some are not used."""
    q, k = randn(2, 3, 5, 4), randn(2, 3, 7, 4)
    for wide in (torch.randn(2, 3, 5, 8), torch.randn(2, 5, 3, 8).transpose(1, 2)):
        placing = attention_call.placing_of(wide[..., :4])
        assert placing.gap == 4
        monkeypatch.setattr(attention_call, "eager_placing", lambda *ignored: placing)
        torch._dynamo.reset()
        ours = compiled(lambda q, k: attend(q, k, k))(q, k)
        assert ours.stride() == wide.stride()
        torch.testing.assert_close(ours, attend(q, k, k))


def test_the_place_of_an_example_without_a_gap() -> None:
    for shape in ((2, 3, 5, 4), (1, 1, 1, 4), (2, 3, 5, 1), (0, 3, 5, 4), (2, 1, 5, 4)):
        for x in (torch.empty(shape), torch.empty(shape).transpose(1, 2)):
            assert attention_call.placing_of(x).gap == 0, (x.shape, x.stride())
