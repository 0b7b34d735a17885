"""Weights of 8 and 4 bits in modules of torch: torchao's layouts, and a module's own codes and scales."""

import importlib.util

import numpy as np
import pytest
import torch
from torch import nn

import sinter
import sinter.pytorch
from sinter.module import ModuleBuilder
from sinter.pytorch.quantized.packed_codes import CODES, DTYPES, CodeFormat, pack, unpack

HAS_TORCHAO = importlib.util.find_spec("torchao") is not None
needs_torchao = pytest.mark.skipif(not HAS_TORCHAO, reason="torchao is not installed")

BATCH, WIDTH, INNER, OUT = 3, 256, 96, 40
ROUNDING = {torch.float32: 2.0**-24, torch.bfloat16: 2.0**-9, torch.float16: 2.0**-12}
ROUNDED_VALUES = 16  # on the way through two layers


@pytest.fixture(autouse=True)
def fresh():
    torch._dynamo.reset()
    sinter.pytorch.reset()
    torch.manual_seed(0)


def draw(form: CodeFormat, rows: int, length: int) -> tuple:
    """Codes, scales and zero points of a format."""
    low, high = CODES[form.code]
    codes = torch.randn(rows, length).mul(20).to(torch.float8_e4m3fn) if low is None else \
        torch.randint(low, high + 1, (rows, length), dtype=torch.uint8 if low == 0 else torch.int8)
    groups = form.groups(length)
    scales = (torch.rand(rows, groups) + 0.5).to(DTYPES[form.scale])
    zeros = torch.randint(-100, 100, (rows, groups), dtype=torch.int8) if form.zeros else None
    return codes, scales, zeros


def elements(form: CodeFormat, codes, scales, zeros) -> torch.Tensor:
    """float32: scale * (code - zero)."""
    size = form.group or codes.shape[1]
    wide = lambda x: x.float().repeat_interleave(size, 1)[:, :codes.shape[1]]
    return wide(scales) * (codes.float() if zeros is None else codes.float() - wide(zeros))


@pytest.mark.parametrize("code", CODES)
@pytest.mark.parametrize("zeros", [False, True])
def test_packed_rows_are_those_that_sinter_reads(code, zeros):
    """The layout in ops of torch is the one of the evaluator, for rows of whole and of short steps."""
    if zeros and code == "e4m3":
        return
    for group, scale, length in [(0, "f32", 250), (0, "bf16", 1032), (16, "f32", 2304),
                                 (32, "bf16", 1032), (64, "f16", 512), (128, "f32", 8)]:
        form = CodeFormat(code, group, scale, zeros)
        drawn = draw(form, 5, length)
        packed = pack(form, *drawn)
        assert packed.shape == (5, form.row_words(length))
        wanted = elements(form, *drawn)
        assert torch.equal(unpack(form, packed, length), wanted)
        with ModuleBuilder() as module:
            module.weight("w", f"i32[5, {form.row_words(length)}]")
            graph = module.entry("main")
            graph.output(graph.op("dequantize", [graph.use("w")], f'size = {length}, codes = "{form}"', "y"))
            result = sinter.compile(module, weights={"w": packed}).run()
        assert np.array_equal(np.asarray(result), wanted.numpy())


def test_a_code_outside_of_its_format():
    with pytest.raises(ValueError, match="codes of int4 are -8 .. 7"):
        pack(CodeFormat("int4", 0, "f32", False), torch.full((2, 8), 9, dtype=torch.int8),
             torch.ones(2, 1), None)


class Codes(nn.Module):
    """A linear whose weight its forward pass computes of codes and scales."""

    def __init__(self, code: str, group: int, zeros: bool, dtype: torch.dtype, length: int, rows: int,
                 rounds: bool = False) -> None:
        super().__init__()
        form = CodeFormat(code, group, "f32", zeros)
        codes, scales, points = draw(form, rows, length)
        self.group, self.dtype, self.rounds = group or length, dtype, rounds
        self.register_buffer("codes", codes)
        self.register_buffer("scales", scales / 100)
        self.register_buffer("points", points)
        self.bias = nn.Parameter(torch.randn(rows).to(dtype))

    def weight(self) -> torch.Tensor:
        rows, length = self.codes.shape
        codes = self.codes.to(torch.float32).view(rows, length // self.group, self.group)
        if self.points is not None:
            codes = codes - self.points.to(torch.float32).unsqueeze(-1)
        weight = (codes * self.scales.unsqueeze(-1)).view(rows, length)
        return weight.to(self.dtype)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return nn.functional.linear(x, self.weight(), self.bias)


def check(module: nn.Module, x: torch.Tensor, count: int) -> None:
    """Compiled and exported, a module is what it is in eager, and reads `count` packed matrices."""
    module.eval()
    with torch.no_grad():
        wanted = module(x)
        compiled = torch.compile(module, backend="sinter", options={"require_full": True})
        results = [compiled(x), compiled(x)]
        assert torch.equal(results[0], results[1])
        exported = sinter.from_torch(module, (x,))
        results.append(exported.compile().run(**{next(iter(exported.inputs)): x}))
    assert exported.text.count("= dequantize") == count, exported.text
    assert not any("float8" in str(tensor.dtype) for tensor in exported.weights.values())
    bound = ROUNDING[wanted.dtype] * ROUNDED_VALUES * float(wanted.abs().max()) + WIDTH**0.5 * 2.0**-22
    for result in results:
        assert result.dtype == wanted.dtype
        assert float((result.float() - wanted.float()).abs().max()) <= bound


@pytest.mark.parametrize("code, group, zeros, dtype", [
    ("int8", 0, False, torch.float32), ("int8", 0, False, torch.bfloat16), ("int8", 32, True, torch.bfloat16),
    ("uint8", 64, True, torch.float32), ("e4m3", 0, False, torch.bfloat16), ("e4m3", 128, False, torch.float32)])
def test_a_weight_of_codes(code, group, zeros, dtype):
    check(Codes(code, group, zeros, dtype, WIDTH, INNER), torch.randn(BATCH, WIDTH).to(dtype), 1)


class PlainCodes(nn.Module):
    """Products with codes alone, which 16 bits have exactly, and a scale for each result behind them."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("codes", torch.randint(-128, 128, (INNER, WIDTH), dtype=torch.int8))
        self.register_buffer("scales", torch.rand(INNER) / 100)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x @ self.codes.to(x.dtype).t() * self.scales.to(x.dtype)


class Table(nn.Module):
    """Rows of a table of codes, which is the output projection, too."""

    def __init__(self, dtype: torch.dtype) -> None:
        super().__init__()
        self.register_buffer("codes", torch.randint(0, 256, (OUT, WIDTH), dtype=torch.uint8))
        self.register_buffer("scales", torch.rand(OUT, 1) / 100)
        self.dtype = dtype

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        table = (self.codes.float() * self.scales).to(self.dtype)
        return torch.tanh(nn.functional.embedding(ids, table)) @ table.t()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_products_with_codes_alone(dtype):
    check(PlainCodes(), torch.randn(BATCH, WIDTH).to(dtype), 1)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_table_of_codes(dtype):
    check(Table(dtype), torch.tensor([[3, 0, 39], [7, 7, 1]]), 2)


def test_products_with_a_vector_and_from_the_left():
    class Left(Codes):
        def forward(self, x):
            return self.weight() @ x

    module = Left("int8", 0, False, torch.float32, WIDTH, INNER)
    check(module, torch.randn(WIDTH), 1)


def test_codes_that_another_op_reads():
    """A scale for each column belongs to no format: the codes are floats, which the product scales."""
    class Columns(PlainCodes):
        def forward(self, x):
            return x @ (self.codes.to(x.dtype) * x[0]).t()

    check(Columns(), torch.randn(BATCH, WIDTH), 1)


def test_fast_numerics_round_no_weight():
    """The product is nearer to float64's than eager's, which rounds each weight."""
    module = Codes("int8", 32, True, torch.bfloat16, WIDTH, INNER)
    x = torch.randn(64, WIDTH).to(torch.bfloat16)
    exact = nn.functional.linear(x.double(), Codes.weight(_wide(module)).double(), module.bias.double())
    with torch.no_grad():
        errors = {}
        for numerics in ("strict", "fast"):
            torch._dynamo.reset()
            compiled = torch.compile(module, backend="sinter", options={"numerics": numerics})
            errors[numerics] = float((compiled(x).double() - exact).abs().mean())
    assert errors["fast"] < 0.8 * errors["strict"]


def _wide(module: Codes) -> Codes:
    wide = Codes.__new__(Codes)
    nn.Module.__init__(wide)
    wide.group, wide.dtype = module.group, torch.float32
    for name in ("codes", "scales", "points"):
        wide.register_buffer(name, getattr(module, name))
    return wide


def test_packed_matrices_are_those_of_the_module_that_is_called():
    """One graph serves modules of one class; a weight that changes in place is packed again."""
    first, second = (Codes("int8", 32, True, torch.float32, WIDTH, INNER) for _ in range(2))
    x = torch.randn(BATCH, WIDTH)

    @torch.compile(backend="sinter")
    def apply(module, x):
        return module(x)

    with torch.no_grad():
        for module in (first, second, first):
            assert torch.allclose(apply(module, x), module(x), rtol=1e-4, atol=1e-4)
        second.codes.neg_()
        assert torch.allclose(apply(second, x), second(x), rtol=1e-4, atol=1e-4)
        second.scales = second.scales * 2
        assert torch.allclose(apply(second, x), second(x), rtol=1e-4, atol=1e-4)


def test_the_gradient_of_an_input_and_a_bias():
    module = Codes("int8", 0, False, torch.float32, WIDTH, INNER)
    x = torch.randn(BATCH, WIDTH, requires_grad=True)
    compiled = torch.compile(module, backend="sinter")
    results = []
    for function in (module, compiled):
        x.grad = module.bias.grad = None
        function(x).square().sum().backward()
        results.append((x.grad, module.bias.grad))
    for eager, own in zip(*results):
        assert torch.allclose(eager, own, rtol=1e-3, atol=1e-3)


def layers(dtype: torch.dtype) -> nn.Sequential:
    return nn.Sequential(nn.Linear(WIDTH, INNER), nn.GELU(), nn.Linear(INNER, OUT, bias=False)).to(dtype)


def configs() -> dict:
    """torchao's layouts of weights alone that it makes on a CPU."""
    from torchao import quantization as ao
    asymmetric = ao.quant_primitives.MappingType.ASYMMETRIC
    return {
        "int8": ao.Int8WeightOnlyConfig(),
        "int8 groups": ao.Int8WeightOnlyConfig(granularity=ao.PerGroup(32)),
        "float8": ao.Float8WeightOnlyConfig(),
        "intx int8": ao.IntxWeightOnlyConfig(),
        "intx int4": ao.IntxWeightOnlyConfig(weight_dtype=torch.int4, granularity=ao.PerGroup(32)),
        "intx int4 zeros": ao.IntxWeightOnlyConfig(weight_dtype=torch.int4, granularity=ao.PerGroup(32),
                                                   mapping_type=asymmetric),
    }


@needs_torchao
@pytest.mark.parametrize("name, dtype", [
    ("int8", torch.float32), ("int8", torch.bfloat16), ("int8 groups", torch.bfloat16),
    ("float8", torch.float32), ("float8", torch.bfloat16), ("intx int8", torch.bfloat16),
    ("intx int4", torch.float32), ("intx int4 zeros", torch.bfloat16)])
def test_torchao(name, dtype):
    from torchao.quantization import quantize_
    module = layers(dtype)
    quantize_(module, configs()[name])
    check(module, torch.randn(BATCH, WIDTH).to(dtype), 2)


@needs_torchao
def test_torchao_int4_has_4_bits():
    from torchao.quantization import quantize_
    module = layers(torch.bfloat16)
    quantize_(module, configs()["intx int4"])
    exported = sinter.from_torch(module, (torch.randn(BATCH, WIDTH, dtype=torch.bfloat16),))
    assert 'codes = "int4 g32 bf16 zeros"' in exported.text


@needs_torchao
def test_torchao_saved(tmp_path):
    """The folder of a quantized module is one for the program."""
    from torchao.quantization import quantize_
    module = layers(torch.bfloat16)
    quantize_(module, configs()["int8"])
    x = torch.randn(BATCH, WIDTH, dtype=torch.bfloat16)
    exported = sinter.from_torch(module, (x,))
    folder = exported.save(tmp_path / "model")
    compiled = sinter.compile(folder)
    (name,) = exported.inputs
    assert torch.equal(torch.as_tensor(compiled.run(**{name: x})),
                       torch.as_tensor(exported.compile().run(**{name: x})))


@needs_torchao
def test_torchao_quantized_activations_stay_in_eager():
    from torchao import quantization as ao
    module = layers(torch.bfloat16)
    ao.quantize_(module, ao.Int8DynamicActivationInt8WeightConfig())
    x = torch.randn(32, WIDTH, dtype=torch.bfloat16)
    compiled = torch.compile(module, backend="sinter")
    with torch.no_grad():
        assert torch.allclose(compiled(x).float(), module(x).float(), rtol=0.1, atol=0.1)
    assert "aten._int_mm" in str(sinter.explain(compiled))
