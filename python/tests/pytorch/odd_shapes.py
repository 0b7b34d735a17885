"""Odd calls of every op that has a conversion: tensors of no axes, of no elements and of one, joined
and transposed axes, memory with gaps, sizes that change, and all element types.

    python odd_shapes.py [NAME ...]        runs all calls, and prints what is wrong

`TABLE` has makers of calls for each op. A maker writes a size as a letter; `Maker` says which number
a letter is, so that one maker gives a call for each kind of odd size.
"""

from __future__ import annotations

import sys
import warnings
from dataclasses import dataclass, field, replace
from typing import Any, Callable, Iterable, Iterator

import torch
from operators import close, is_tensor, to_double
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils._pytree import tree_flatten, tree_map

from sinter.pytorch.convert import importer
from sinter.pytorch.tools import report
from sinter.pytorch.backend import compile_aten, read_options
from sinter.pytorch.graphs.decompositions import decompositions
from sinter.pytorch.convert.ops import CONVERSIONS
from sinter.pytorch.quantized.packed_codes import CodeFormat, pack

aten = torch.ops.aten
OPTIONS = read_options(None)
MOST_TOGETHER = 64  # calls of one graph
TOO_LARGE = "more than 2^48 bytes"  # with eight axes whose sizes change, where these are largest
inf, nan = float("inf"), float("nan")
importer.RAISES_FAULTS = True  # an exception of a conversion is a failure, and no op in eager

DTYPES = (torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.bool,
          torch.float64, torch.int16, torch.int8, torch.uint8)
SPECIAL = (0.0, -0.0, 1.0, -1.0, 0.5, 2.5, -2.5, 3.0, -7.0, 100.0, -100.0, 1e-3, inf, -inf, nan)


# ---- calls

@dataclass
class Call:
    """A call of an op. A function among the arguments is called with `given` and the op's tensors:
    it computes sizes from theirs."""

    args: tuple
    kwargs: dict
    given: tuple = ()  # tensors whose sizes the arguments use, and which the op does not get


def call(*args: Any, given: tuple = (), **kwargs: Any) -> Call:
    return Call(args, kwargs, given)


@dataclass
class Operand:
    """A tensor of a call before it is given: `data`, as the graph's input has it, and what the graph
    does with it first."""

    data: torch.Tensor
    groups: tuple[int, ...] | None = None  # axes of `data` that make each axis; None: as they are
    is_turned: bool = False  # the last two axes are swapped

    def tensor(self, data: torch.Tensor) -> torch.Tensor:
        if self.groups is not None and any(count != 1 for count in self.groups):
            sizes, axis = [], 0
            for count in self.groups:
                size = data.shape[axis]
                for i in range(1, count):
                    size = size * data.shape[axis + i]
                sizes.append(size)
                axis += count
            data = aten.view.default(data, sizes)
        return aten.transpose.int(data, -2, -1) if self.is_turned else data


@dataclass(frozen=True)
class Maker:
    """Makes tensors. sizes: of each letter, a number or the numbers whose product it is."""

    sizes: dict[str, int | tuple[int, ...]]
    dtype: torch.dtype = torch.float32
    joined: str = "none"  # which operands have joined axes: none, all, first, rest
    memory: str = "plain"  # plain, turned (by the graph), transposed, gaps
    is_special: bool = False  # whether the numbers have zeros of both signs, infinities and NaN
    state: dict = field(default_factory=lambda: {"operands": 0})

    def size(self, letter: str) -> int:
        size = int(letter) if letter.isdigit() else self.sizes[letter]
        if isinstance(size, tuple):
            product = 1
            for factor in size:
                product *= factor
            return product
        return size

    def _operand(self, spec: str, make: Callable) -> Operand:
        number = self.state["operands"]
        self.state["operands"] += 1
        is_joined = {"none": False, "all": True, "first": number == 0, "rest": number > 0}
        sizes, groups = [], []
        for letter in spec:
            size = int(letter) if letter.isdigit() else self.sizes[letter]
            if isinstance(size, tuple) and is_joined[self.joined]:
                sizes += size
                groups.append(len(size))
            else:
                sizes.append(self.size(letter))
                groups.append(1)
        turned = self.memory == "turned" and len(spec) >= 2 and self.joined == "none"
        if turned:
            sizes[-1], sizes[-2] = sizes[-2], sizes[-1]
        data = make(sizes, number)
        if self.memory == "transposed" and data.dim() >= 2:
            data = data.transpose(0, -1).contiguous().transpose(0, -1)
        if self.memory == "gaps" and data.dim() >= 1 and data.shape[-1]:
            data = data.repeat_interleave(2, -1)[..., ::2]
        return Operand(data, tuple(groups), turned)

    def x(self, spec: str = "", dtype: torch.dtype | None = None) -> Operand:
        """Numbers of the maker's type."""
        def make(sizes, number):
            count = torch.Size(sizes).numel()
            kind = dtype or self.dtype
            if self.is_special and kind.is_floating_point:
                values = torch.tensor(SPECIAL)
                step = (1, 2, 4)[number % 3]  # none divides the 15 numbers: pairs differ
                return values[(torch.arange(count) * step + number) % len(SPECIAL)].reshape(
                    sizes).to(kind)
            if kind == torch.bool:
                return (torch.arange(count) * (number + 2) % 3 == 0).reshape(sizes)
            if not kind.is_floating_point:
                low = 0 if kind == torch.uint8 else -4
                return torch.randint(low, 9, sizes).to(kind)
            return torch.randn(sizes).to(kind)
        return self._operand(spec, make)

    def positive(self, spec: str = "") -> Operand:
        return self._operand(spec, lambda sizes, number: (torch.rand(sizes) + 0.5).to(
            self.dtype if self.dtype.is_floating_point else torch.float32))

    def index(self, spec: str, below: str, least: int = 0) -> Operand:
        """Row numbers below a size."""
        return self._operand(spec, lambda sizes, number: torch.randint(
            least, max(self.size(below), 1), sizes))

    def complex(self, spec: str = "") -> Operand:
        return self._operand(spec, lambda sizes, number: torch.randn(sizes, dtype=torch.complex64))

    def mask(self, spec: str = "") -> Operand:
        return self.x(spec, torch.bool)


TABLE: dict[str, list[Callable[[Maker], Call]]] = {}
ELEMENTWISE: list[str] = []  # ops that are run in all element types
MOVES: set[str] = set()  # ops that are no work for a kernel: an op follows on their results
UNSET: set[str] = set()  # ops whose result has no defined numbers


def odd(names: str, *makers: Callable[[Maker], Call], elementwise: bool = False,
        moves: bool = False) -> None:
    """Adds makers for ops: "relu add.Tensor", in which "relu" is relu.default."""
    for name in names.split():
        name = name if name.count(".") else name + ".default"
        TABLE.setdefault(name, []).extend(makers)
        if elementwise and name not in ELEMENTWISE:
            ELEMENTWISE.append(name)
        if moves:
            MOVES.add(name)


def shapes_of(*specs: str, **kwargs: Any) -> list[Callable[[Maker], Call]]:
    """A maker for each "ab b": tensors of these shapes; "." has no axes."""
    return [lambda k, spec=spec: call(*[k.x(part.strip(".")) for part in spec.split()], **kwargs)
            for spec in specs]


def with_numbers(specs: str, *numbers: tuple) -> list[Callable[[Maker], Call]]:
    """A maker for each shape and each tuple of numbers behind the tensor."""
    return [lambda k, spec=spec, behind=behind: call(k.x(spec.strip(".")), *behind)
            for spec in specs.split() for behind in numbers]


# ---- element by element

UNARY = shapes_of(".", "a", "ab", "a1b")
PAIRS = shapes_of(". .", "ab .", ". ab", "ab ab", "ab b", "a1 1b", "b a1", "ab 11b")
SCALARS = with_numbers(". ab", (2,), (0,), (2.5,), (True,), (-1,), (inf,))

odd("""relu silu gelu abs neg exp expm1 log log1p sqrt rsqrt sigmoid tanh erf sin cos floor round
       ceil trunc frac reciprocal log2 log10 exp2 erfc tan sinh cosh sign sgn isnan isinf
       signbit logical_not bitwise_not log_sigmoid_forward leaky_relu elu hardtanh softplus""",
    *UNARY, elementwise=True)
odd("gelu", *shapes_of("ab", approximate="tanh"))
odd("leaky_relu", *with_numbers(". ab", (0.2,), (0,), (-1.5,)))
odd("elu", *with_numbers(". ab", (2.0, 1.5, 0.5), (0.5,)))
odd("hardtanh", *with_numbers(". ab", (-2, 2.5), (0.0, 0.0)))
odd("softplus", *with_numbers(". ab", (2, 1), (0.5, 20.0)))
odd("gelu_backward silu_backward sigmoid_backward tanh_backward", *shapes_of(". .", "a a", "ab ab"))
odd("gelu_backward", *shapes_of("ab ab", approximate="tanh"))
odd("threshold_backward", lambda k: call(k.x(), k.x(), 0), lambda k: call(k.x("ab"), k.x("ab"), 0),
    lambda k: call(k.x("ab"), k.x("ab"), 0.5))
odd("log_sigmoid_backward", *[
    lambda k, s=s: call(k.x(s), k.x(s), lambda grad, x: (-x.abs()).exp()) for s in ("", "ab")])

odd("""add.Tensor sub.Tensor rsub.Tensor mul.Tensor div.Tensor floor_divide remainder.Tensor fmod.Tensor maximum
       minimum fmax fmin hypot logaddexp xlogy.Tensor pow.Tensor_Tensor eq.Tensor ne.Tensor lt.Tensor
       le.Tensor gt.Tensor ge.Tensor logical_and logical_or logical_xor bitwise_and.Tensor
       bitwise_or.Tensor bitwise_xor.Tensor""", *PAIRS, elementwise=True)
odd("""add.Scalar sub.Scalar rsub.Scalar mul.Scalar div.Scalar remainder.Scalar eq.Scalar ne.Scalar
       lt.Scalar le.Scalar gt.Scalar ge.Scalar bitwise_and.Scalar bitwise_or.Scalar
       bitwise_xor.Scalar pow.Tensor_Scalar clamp_min clamp_max fmod.Scalar""", *SCALARS, elementwise=True)
odd("__lshift__.Tensor __rshift__.Tensor bitwise_left_shift.Tensor bitwise_right_shift.Tensor", *PAIRS, elementwise=True)
odd("bitwise_left_shift.Scalar_Tensor bitwise_right_shift.Scalar_Tensor",
    *[lambda k, n=n, s=s: call(n, k.x(s)) for n in (0, 3) for s in ("", "ab")], elementwise=True)
odd("__lshift__.Scalar __rshift__.Scalar bitwise_left_shift.Tensor_Scalar bitwise_right_shift.Tensor_Scalar",
    *[lambda k, n=n, s=s: call(k.x(s), n) for n in (0, 3) for s in ("", "ab")], elementwise=True)
odd("add.Tensor sub.Tensor rsub.Tensor", *shapes_of("ab b", ". .", alpha=2),
    *shapes_of("ab b", alpha=-0.5))
odd("add.Tensor sub.Tensor rsub.Tensor", lambda k: call(k.x("ab"), 3, alpha=2))
odd("add.Tensor sub.Tensor mul.Tensor div.Tensor eq.Tensor lt.Tensor", lambda k: call(k.x("ab"), 3),
    lambda k: call(k.x(), 2.5))
odd("add.Scalar sub.Scalar rsub.Scalar", lambda k: call(k.x("ab"), 3, 2),
    lambda k: call(k.x("ab"), 2, 0.5))
for rounding in ("floor", "trunc", None):
    odd("div.Tensor_mode", *shapes_of(". .", "ab b", "ab ab", rounding_mode=rounding),
        elementwise=True)
    odd("div.Scalar_mode", lambda k, r=rounding: call(k.x("ab"), 2, rounding_mode=r),
        lambda k, r=rounding: call(k.x(), -3, rounding_mode=r), elementwise=True)
odd("clamp", *with_numbers(". ab", (-1, 1), (None, 0.5), (0.5, None), (2, -2)), elementwise=True)
odd("clamp.Tensor", *shapes_of(". . .", "ab b .", "ab ab ab"),
    lambda k: call(k.x("ab"), None, k.x("b")), lambda k: call(k.x("ab"), k.x(), None))
odd("clamp_min.Tensor clamp_max.Tensor", *shapes_of(". .", "ab .", "ab b"), elementwise=True)
odd("pow.Tensor_Scalar", *with_numbers(". ab", (3,), (4,), (0.5,), (-0.5,), (-2,), (1,)))
odd("pow.Scalar", *[lambda k, n=n, s=s: call(n, k.x(s)) for n in (2, 0, 1, 2.5, -1.5)
                    for s in ("", "ab")], elementwise=True)
odd("lerp.Scalar", lambda k: call(k.x(), k.x(), 0.3), lambda k: call(k.x("ab"), k.x("b"), 0.7))
odd("lerp.Tensor", *shapes_of(". . .", "ab ab ab", "ab b .", "ab ab a1"))
odd("addcmul addcdiv", *shapes_of(". . .", "ab ab ab", "ab b a1"),
    *shapes_of("ab b a1", value=-0.5))
odd("prims.fma.default", *shapes_of(". . .", "ab ab ab"))
odd("where.self", lambda k: call(k.mask(), k.x(), k.x()),
    lambda k: call(k.mask("ab"), k.x("b"), k.x("a1")), lambda k: call(k.mask("b"), k.x("ab"), k.x()),
    lambda k: call(k.mask(), k.x("ab"), k.x("ab")), elementwise=True)
odd("masked_fill.Scalar", lambda k: call(k.x(), k.mask(), 2),
    lambda k: call(k.x("ab"), k.mask("b"), -inf), lambda k: call(k.x("b"), k.mask("ab"), 1),
    elementwise=True)
odd("masked_fill.Tensor", lambda k: call(k.x(), k.mask(), k.x()),
    lambda k: call(k.x("ab"), k.mask("a1"), k.x()))
for to in DTYPES[:7]:
    odd("_to_copy", lambda k, to=to: call(k.x(), dtype=to), lambda k, to=to: call(k.x("ab"), dtype=to),
        elementwise=True)
    odd("prims.convert_element_type.default", lambda k, to=to: call(k.x(), to),
        lambda k, to=to: call(k.x("ab"), to), elementwise=True)

# ---- reductions

AXES = [(axes, spec) for spec in ("", "ab", "abc") for axes in (None, [0], [-1], [0, 1], [1], [], [0, -2], [-1, 0])
        if len(spec) > max((axis if axis >= 0 else -axis - 1 for axis in axes or ()), default=0)
        or not spec and axes in ([0], [-1])]


def reductions(**kwargs: Any) -> list[Callable[[Maker], Call]]:
    return [lambda k, axes=axes, spec=spec, keep=keep: call(k.x(spec), axes, keep, **kwargs)
            for axes, spec in AXES for keep in (False, True)]


def along_one(**kwargs: Any) -> list[Callable[[Maker], Call]]:
    return [lambda k, axis=axis, spec=spec, keep=keep: call(k.x(spec), axis, keep, **kwargs)
            for axis, spec in ((0, ""), (-1, ""), (0, "a"), (0, "ab"), (1, "ab"), (-1, "abc"),
                               (1, "abc")) for keep in (False, True)]


odd("sum mean max min all any", *shapes_of(".", "a", "ab", "abc"))
odd("sum", *shapes_of("ab", dtype=torch.float32), lambda k: call(k.mask("ab")))
odd("sum.dim_IntList mean.dim", *reductions(), *reductions(dtype=torch.float32)[4:6])
odd("sum.dim_IntList", lambda k: call(k.mask("ab"), [0]))
odd("amax amin", *[maker for axes_maker in [reductions()] for maker in axes_maker])
odd("argmax argmin", *shapes_of(".", "a", "ab"), *along_one())
odd("max.dim min.dim all.dim any.dim", *along_one())
odd("all.dims any.dims", *reductions())
for correction in (None, 0, 1, 2.5):
    odd("var.correction std.correction var_mean.correction",
        *[lambda k, axes=axes, spec=spec, keep=keep, n=correction:
          call(k.x(spec), axes, correction=n, keepdim=keep)
          for axes, spec in AXES for keep in (False, True)])
odd("logsumexp", *[lambda k, axes=axes, spec=spec, keep=keep: call(k.x(spec), axes, keep)
                   for axes, spec in AXES if axes is not None for keep in (False, True)])
odd("linalg_vector_norm", *[lambda k, axes=axes, spec=spec, keep=keep, n=n:
                            call(k.x(spec), n, axes, keep)
                            for n in (2, 1, 0, inf, -inf, 3) for axes, spec in AXES
                            for keep in (False, True)],
    lambda k: call(k.x("ab"), 2, [0], False, dtype=torch.float32))
odd("prod.default", *shapes_of("", "ab"))
odd("prod.dim_int", *with_numbers("ab", (0,), (-1, True)), *with_numbers(".", (0,)))
odd("cumprod", *with_numbers("ab", (0,), (-1,)), *with_numbers(".", (0,)))
odd("cumsum", *with_numbers(".", (0,), (-1,)), *with_numbers("ab", (0,), (1,), (-1,)),
    *with_numbers("abc", (1,)), lambda k: call(k.mask("ab"), 1),
    lambda k: call(k.x("ab"), 0, dtype=torch.float32))
odd("mse_loss", *[lambda k, s=s, r=r: call(k.x(s), k.x(s), r) for s in ("", "a", "ab")
                  for r in (0, 1, 2)])
odd("mse_loss_backward", *[lambda k, s=s, r=r: call(k.x(s if r == 0 else ""), k.x(s), k.x(s), r)
                           for s in ("", "a", "ab") for r in (0, 1, 2)])
odd("sinter.in_range.default", *[lambda k, s=s: call(k.x(s), -99, 99, "input") for s in ("", "a", "ab", "a0")])

# ---- rows

odd("_softmax", *[lambda k, s=s, axis=axis: call(k.x(s), axis, False)
                  for s, axis in (("", 0), ("", -1), ("a", 0), ("ab", 0), ("ab", 1), ("abc", 1),
                                  ("abc", -3), ("abc", -1))])
odd("_softmax_backward_data", *[lambda k, s=s, axis=axis: call(k.x(s), k.x(s), axis, k.dtype)
                                for s, axis in (("", 0), ("", -1), ("ab", 0), ("ab", -1),
                                                ("abc", 1))])


def norm_calls(k: Maker, number: int) -> Call:
    weight, bias = number % 2 == 0, number // 2 % 2 == 0
    spec, count = (("b", 1), ("ab", 1), ("abc", 1), ("abc", 2), ("ab", 2))[number // 4]
    shape = spec[-count:]
    return call(k.x(spec), lambda x, *rest: list(x.shape[-count:]), k.x(shape) if weight else None,
                k.x(shape) if bias else None, 1e-5)


odd("native_layer_norm", *[lambda k, n=n: norm_calls(k, n) for n in range(20)])
odd("_fused_rms_norm", *[lambda k, s=s, n=n, w=w, eps=eps:
                         call(k.x(s), lambda x, *rest: list(x.shape[-n:]), k.x(s[-n:]) if w else None,
                              eps)
                         for s, n in (("b", 1), ("ab", 1), ("abc", 1), ("abc", 2))
                         for w in (True, False) for eps in (None, 1e-5)])
odd("native_group_norm", *[
    lambda k, s=s, w=w, b=b, g=g: call(
        k.x(s), k.x(s[1]) if w else None, k.x(s[1]) if b else None, lambda x, *rest: x.shape[0],
        lambda x, *rest: x.shape[1],
        lambda x, *rest: x.numel() // (x.shape[0] * x.shape[1]) if x.numel() else 0, g, 1e-5)
    for s in ("a4bc", "a4", "a6b") for w in (True, False) for b in (True, False) for g in (1, 2)])

# ---- products

odd("mm", *shapes_of("ab bc", "ab ba", "a1 1c", "1b b1"))
odd("sinter.mm_in_float32.default", *[lambda k, s=s: call(
    *(k.x(part, torch.bfloat16) for part in s.split())) for s in ("ab bc", "ab ba", "a1 1c", "1b b1")])
odd("bmm", *shapes_of("cab cba", "1ab 1bc", "abc acb"))
odd("mv", *shapes_of("ab b"))
odd("dot vdot", *shapes_of("a a", "1 1"))
for beta, alpha in ((1, 1), (0, 1), (0.5, 2), (2, 0), (0, 0)):
    odd("addmm", *shapes_of("c ab bc", ". ab bc", "ac ab bc", "a1 ab bc", "1 ab b1", "1c ab bc",
                            beta=beta, alpha=alpha))
    odd("baddbmm", *shapes_of(". cab cba", "caa cab cba", "a cab cba", "1aa cab cba", "c1a cab cba",
                              beta=beta, alpha=alpha))


def patches(k: Maker, spec: str, kernel: str, bias: bool) -> Call:
    axes = len(spec) - 2
    strides = [int(size) for size in kernel[2:]]
    return call(k.x(spec), k.x(kernel), k.x(kernel[0]) if bias else None, strides, [0] * axes,
                [1] * axes, False, [0] * axes, 1)


CONVOLUTIONS = (("a384", "c322"), ("a36", "c33"), ("abc4", "cb11"), ("ab54", "cb22"), ("abc", "4b1"),
                ("a3464", "c3232"), ("a3bc", "c311"))
odd("convolution", *[lambda k, s=s, w=w, b=b: patches(k, s, w, b) for s, w in CONVOLUTIONS
                     for b in (True, False)])


def patches_backward(k: Maker, spec: str, kernel: str, mask: list[bool]) -> Call:
    forward = patches(k, spec, kernel, True)
    x, weight = forward.args[:2]
    counts = [k.size(s) // int(w) for s, w in zip(spec[2:], kernel[2:])]
    grad = Operand(torch.randn([k.size(spec[0]), k.size(kernel[0]), *counts]).to(k.dtype))
    return call(grad, x, weight, lambda g, x, w: [w.shape[0]], *forward.args[3:], mask)


odd("convolution_backward", *[lambda k, s=s, w=w, m=m: patches_backward(k, s, w, m)
                              for s, w in CONVOLUTIONS if s[2:].isdigit()
                              for m in ([False, True, True], [True, True, False],
                                        [False, True, False])])

# Channels with kernels of their own: kernel, stride, padding, dilation.
OF_CHANNELS = ((4, 1, 3, 1), (3, 1, 1, 1), (2, 1, 0, 3), (3, 2, 2, 1), (1, 1, 0, 1), (2, 1, 4, 1))


def of_channels(k: Maker, numbers: tuple[int, ...], bias: bool) -> Call:
    kernel, *rest = numbers
    return call(k.x("a47"), k.x(f"41{kernel}"), k.x("4") if bias else None, *[[one] for one in rest], False, [0], 4)


def of_channels_backward(k: Maker, numbers: tuple[int, ...], mask: list[bool]) -> Call:
    kernel, stride, padding, dilation = numbers
    forward = of_channels(k, numbers, False)
    count = (7 + 2 * padding - dilation * (kernel - 1) - 1) // stride + 1
    grad = Operand(torch.randn([k.size("a"), 4, count]).to(k.dtype))
    return call(grad, *forward.args[:2], [4], *forward.args[3:], mask)


odd("convolution", *[lambda k, n=n, b=b: of_channels(k, n, b) for n in OF_CHANNELS for b in (True, False)])
odd("convolution_backward", *[lambda k, n=n, m=m: of_channels_backward(k, n, m) for n in OF_CHANNELS
                              for m in ([True, True, True], [False, True, False])])
SEEN = (None, "mask ef", "x ef", "mask a1ef", "x 11ef", "x 1be1", "mask abef", "mask a11f")


def attend(k: Maker, seen: str | None, causal: bool, keys: str, backward: bool) -> Call:
    """q [a, b, e, d], keys of `keys` heads [a, keys, f, d]; 4 heads and fixed widths where `keys` is a
    number."""
    kind, _, spec = (seen or "").partition(" ")
    f = "e" if causal else "f"
    spec = spec.replace("f", f)
    heads, width, last = ("b", "d", "c") if keys == "b" else ("4", "4", "6")
    q, k_, v = k.x(f"a{heads}e{width}"), k.x(f"a{keys}{f}{width}"), k.x(f"a{keys}{f}{last}")
    mask = getattr(k, kind)(spec) if seen else None
    grad = (k.x(f"a{heads}e{last}"),) if backward else ()
    return call(*grad, q, k_, v, mask, causal, 0.5)


for seen in SEEN:
    for causal in (False, True):
        for keys in ("b", "2", "1"):
            odd("sinter.attention.default", lambda k, s=seen, c=causal, h=keys: attend(k, s, c, h, False))
            odd("sinter.attention_backward.default",
                lambda k, s=seen, c=causal, h=keys: attend(k, s, c, h, True))


def attend_with_sums(k: Maker, seen: str | None, causal: bool, keys: str, backward: bool) -> Call:
    """The same: the result and the log-sums, or the gradients from them."""
    operands = attend(k, seen, causal, keys, False).args
    if not backward:
        return call(*operands)
    try:
        sums = torch.ops.sinter.attention_with_log_sum(
            *(x.tensor(x.data) if isinstance(x, Operand) else x for x in operands))
    except RuntimeError:  # sizes that do not fit, which eager refuses again
        return call(*operands)
    heads, last = ("b", "c") if keys == "b" else ("4", "6")
    return call(k.x(f"a{heads}e{last}"), *map(Operand, sums), *operands)


for seen in SEEN:
    for causal in (False, True):
        for keys in ("b", "2", "1"):
            odd("sinter.attention_with_log_sum.default",
                lambda k, s=seen, c=causal, h=keys: attend_with_sums(k, s, c, h, False))
            odd("sinter.attention_gradients.default",
                lambda k, s=seen, c=causal, h=keys: attend_with_sums(k, s, c, h, True))


def attend_to_rows(k: Maker, keys: str, backward: bool) -> Call:
    """q [e, b, d], keys [f, `keys`, d], and any numbers for the first and the last key; 4 heads and
    fixed widths where `keys` is a number."""
    heads, width, last = ("b", "d", "c") if keys == "b" else ("4", "4", "6")
    grad = (k.x(f"e{heads}{last}"),) if backward else ()
    return call(*grad, k.x(f"e{heads}{width}"), k.x(f"f{keys}{width}"), k.x(f"f{keys}{last}"),
                k.x("e", torch.int32), k.x("e", torch.int32), 0.5)


for keys in ("b", "2", "1"):
    odd("sinter.ranged_attention.default", lambda k, h=keys: attend_to_rows(k, h, False))
    odd("sinter.ranged_attention_backward.default", lambda k, h=keys: attend_to_rows(k, h, True))

# ---- views and moves

odd("view_as_real", *[lambda k, s=s: call(k.complex(s)) for s in ("", "a", "ab", "a0", "1b")], moves=True)

odd("view reshape _unsafe_view _reshape_copy view_copy",
    lambda k: call(k.x("ab"), lambda x: [x.shape[0] * x.shape[1]]),
    lambda k: call(k.x("ab"), lambda x: [x.shape[1], x.shape[0]]),
    lambda k: call(k.x("ab"), lambda x: [1, x.shape[0], 1, x.shape[1]]),
    lambda k: call(k.x("1"), []), lambda k: call(k.x(""), [1, 1]), lambda k: call(k.x(""), []),
    lambda k: call(k.x("a4"), lambda x: [2, x.shape[0], 2]),
    lambda k: call(k.x("a4"), lambda x: [x.shape[0] * 2, 2]),
    lambda k: call(k.x("a0"), lambda x: [0, x.shape[0]]),
    lambda k: call(k.x("2b"), lambda x: [x.shape[1], 2]),
    lambda k: call(k.x("6ab"), lambda x: [x.shape[1] * 3, x.shape[2] * 2]),
    lambda k: call(k.x("abc"), lambda x: [x.shape[0] * x.shape[1], x.shape[2]]),
    lambda k: call(k.x("abc"), lambda x: [x.shape[0], x.shape[1] * x.shape[2]]), moves=True)
odd("clone alias detach lift_fresh_copy lift_fresh alias_copy", *shapes_of(".", "a", "ab", "abc"), moves=True)
odd("copy", *shapes_of(". .", "ab .", "ab b", "ab ab"), moves=True)
odd("permute permute_copy", *with_numbers("ab", ([1, 0],), ([0, 1],), ([-1, -2],)),
    *with_numbers("abc", ([2, 0, 1],), ([-1, 1, 0],)), lambda k: call(k.x(), []),
    lambda k: call(k.x("a"), [0]), moves=True)
odd("transpose.int transpose_copy.int", *with_numbers(".", (0, 0), (-1, 0)),
    *with_numbers("a", (0, -1)), *with_numbers("abc", (0, 2), (1, -1), (1, 1)), moves=True)
odd("t", *shapes_of(".", "a", "ab"), moves=True)
odd("expand expand_copy", lambda k: call(k.x(), []), lambda k: call(k.x(), [2, 3]),
    lambda k: call(k.x(), [0]), lambda k: call(k.x("1"), [5]),
    lambda k: call(k.x("1b"), lambda x: [4, x.shape[1]]), lambda k: call(k.x("1b"), [0, -1]),
    lambda k: call(k.x("ab"), [3, -1, -1]),
    lambda k: call(lambda y, x: [x.shape[0], y.shape[0], x.shape[1]], given=(k.x("a"),),
                   first=k.x("b1")), moves=True)
odd("squeeze", *shapes_of(".", "a", "1a1", "11"), moves=True)
odd("squeeze.dim", *with_numbers(".", (0,), (-1,)),
    *with_numbers("a 1 1a1", (0,), (-1,)), *with_numbers("1a1", (1,)), moves=True)
odd("squeeze.dims", *with_numbers(".", ([0],), ([-1],), ([],)),
    *with_numbers("1a1", ([0, 2],), ([-1],), ([0, 1, 2],), ([],)), moves=True)
odd("unsqueeze", *with_numbers(".", (0,), (-1,)), *with_numbers("ab", (0,), (2,), (-3,)),
    moves=True)
odd("slice.Tensor slice_copy.Tensor", lambda k: call(k.x("ab")),
    *with_numbers("ab", (0, 1), (0, 0, 0), (1, 1, 3), (0, -1), (1, 0, -1), (1, 0, 1000), (0, 5, 2),
                  (1, 0, 9999, 2), (-1, 1, None, 3), (0, -100, 1), (1, None, 2)),
    *with_numbers("5b", (0, 1, 4), (0, 0, 5, 2), (0, 4, 5), (0, 4, None, 3), (0, 5), (0, 9, 12)),
    moves=True)
odd("select.int select_copy.int", *with_numbers("ab", (0, 0), (0, -1), (1, 0), (-1, -1), (-2, 0)),
    *with_numbers("a", (0, 0), (0, -1)), *with_numbers("a3b", (1, 2), (-2, -3)),
    *with_numbers("abc", (1, 1)), moves=True)
odd("split.Tensor split_copy.Tensor unsafe_split.Tensor", *with_numbers("ab", (1,), (2,), (100,),
                                                                        (2, 1), (3, -1)),
    *with_numbers("a5", (2, 1), (5, -1), (1, 1)), *with_numbers("0b", (1,), (0,)), moves=True)
odd("split_with_sizes split_with_sizes_copy", *with_numbers("a5", ([2, 3], 1), ([0, 5], -1),
                                                           ([5], 1), ([1, 0, 4], 1)),
    *with_numbers("5b", ([1, 4],)), *with_numbers("0b", ([0, 0],)), moves=True)
odd("unbind.int unbind_copy.int", *with_numbers("3b 1b 3", (), (0,), (-2,)),
    *with_numbers("b3", (1,), (-1,)), *with_numbers("0b", (0,)), moves=True)


def joined_lists(name: str, *lists: str, axes: Iterable[int] = (0,)) -> None:
    odd(name, *[lambda k, specs=specs, axis=axis:
                call([k.x(spec.strip(".")) for spec in specs.split()], axis)
                for specs in lists for axis in axes])


joined_lists("cat", "a a", "ab ab", "ab cb", "0 ab", "ab 0 cb", "ab", "0 0", "1b 0b", "ab ab 0")
joined_lists("cat", "ab ac", "ab ab", "a1 a0", "0 ab", "abc abc", axes=(1, -1))
joined_lists("stack", ". .", "a a", "ab ab ab", "ab", ".", axes=(0, -1))
joined_lists("stack", "ab ab", axes=(1, 2, -2))
odd("cat", lambda k: call([k.x("ab"), k.x("ab", torch.float16)], 0),
    lambda k: call([k.x("ab"), k.x("ab", torch.int64)], 1))
odd("sinter.slice_of_joined.default", *[
    lambda k, b=b, e=e: call([k.x("1b"), k.x("ab")], 0, b, e) for b, e in ((1, 2**63 - 1), (0, -1), (1, 2))],
    lambda k: call([k.x("ab"), k.x("a1"), k.x("ab")], -1, 0, -2))
odd("sinter.joined_slices.default", lambda k: call([k.x("1b"), k.x("ab")], 0, [0, 0], [2**63 - 1, -1]),
    lambda k: call([k.x("ab"), k.x("a1"), k.x("ab")], 1, [-1, 0, 0], [2**63 - 1, 1, -1]))
odd("sinter.part_of_rows.default", lambda k: call(k.x("ab"), 0, lambda x: x.shape[1]),
    lambda k: call(k.x("ab"), 0, 0))


def packed_rows(form: str, rows: int, columns: int) -> Operand:
    """A matrix of codes, packed."""
    codes = torch.randint(0, 8, (rows, columns))
    numbers = CodeFormat.parse(form)
    groups = numbers.groups(columns)
    zeros = torch.randint(0, 8, (rows, groups)) if numbers.zeros else None
    return Operand(pack(numbers, codes, torch.rand(rows, groups), zeros))


odd("sinter.dequantize.default", *[lambda k, form=form, rows=rows, columns=columns: call(
    packed_rows(form, rows, columns), form, columns)
    for form, rows, columns in (("int8 row f32", 1, 1), ("uint4 g32 f16 zeros", 3, 72),
                                ("int4 g128 bf16", 2, 1100))])
odd("sinter.linear_of_codes.default", *[lambda k, form=form, spec=spec: call(
    k.x(spec), packed_rows(form, 5, 8), None, form)
    for form, spec in (("int8 row f32", "8"), ("int4 row f32", "a8"), ("uint8 row f32", "ab8"))])
odd("stack", lambda k: call([k.x("ab"), k.x("ab", torch.int32)], 0))
odd("repeat", *with_numbers(".", ([],), ([2],), ([2, 3],), ([0],)),
    *with_numbers("ab", ([1, 2],), ([2, 1],), ([3, 1, 2],), ([1, 1],), ([0, 2],), ([1, 0, 1],)))
odd("flip", *with_numbers(".", ([],), ([0],), ([-1],)),
    *with_numbers("ab", ([0],), ([-1],), ([0, 1],), ([],)))
odd("roll", *with_numbers(".", ([1],), ([0],), ([2], [0])),
    *with_numbers("ab", ([1],), ([-5],), ([1], [0]), ([1, -2], [0, 1]), ([100], [1]), ([0], [-1]),
                  ([1, 1], [0, 0])))
odd("constant_pad_nd", *with_numbers(".", ([],)),
    *with_numbers("ab", ([1, 2],), ([0, 0],), ([1, 0, 0, 2], 0.5), ([-1, 0],), ([1, -1], -inf),
                  ([],), ([-1, -1, 1, 1], 2), ([0, 0, 3, 0],)), *with_numbers("a5", ([-2, -3],)))
odd("slice_scatter", lambda k: call(k.x("ab"), k.x("ab")),
    lambda k: call(k.x("5b"), k.x("2b"), 0, 1, 3), lambda k: call(k.x("b5"), k.x("b1"), 1, -1),
    lambda k: call(k.x("5b"), k.x("3b"), 0, 0, None, 2), lambda k: call(k.x("5b"), k.x("0b"), 0, 3, 1),
    lambda k: call(k.x("5b"), k.x("2b"), -2, 3, 99), lambda k: call(k.x("5b"), k.x("5b"), 0, -99, 99),
    lambda k: call(k.x("5b"), k.x("2b", torch.float16), 0, 3))
odd("select_scatter", *[lambda k, n=n: call(k.x("ab"), k.x("b"), 0, n) for n in (0, -1, 1)],
    lambda k: call(k.x("a3b"), k.x("ab"), -2, 2), lambda k: call(k.x("ab"), k.x("a"), 1, -1),
    lambda k: call(k.x("a"), k.x(""), 0, 0))
odd("tril triu", *with_numbers("ab", (), (1,), (-1,), (100,), (-100,)), *with_numbers("cab", (0,)))
odd("as_strided as_strided_copy", lambda k: call(k.x("46"), [3, 2], [6, 1]),
    lambda k: call(k.x("46"), [3, 2, 4], [5, 1, 1], 4), lambda k: call(k.x("46"), [2, 3], [1, 8], 1),
    lambda k: call(k.x("46"), [], [], 23), lambda k: call(k.x("46"), [0, 3], [6, 1], 2),
    lambda k: call(k.x("46"), [3, 5], [0, 1]), lambda k: call(k.x("234"), [24], [1]), moves=True)
odd("as_strided_scatter", lambda k: call(k.x("46"), k.x("32"), [3, 2], [6, 1]),
    lambda k: call(k.x("46"), k.x("23"), [2, 3], [1, 8], 1), lambda k: call(k.x("46"), k.x(""), [], [], 23),
    lambda k: call(k.x("46"), k.x("03"), [0, 3], [6, 1], 2), lambda k: call(k.x("234"), k.x("432"), [4, 3, 2], [1, 4, 12]),
    lambda k: call(k.x("46"), k.x("46", torch.float16), [4, 6], [6, 1], 0))
odd("diagonal diagonal_copy", *with_numbers("ab", (), (1,), (-1,), (100,), (-100,), (0, 1, 0)),
    *with_numbers("abc", (), (0, -2, -1), (1, 0, 2), (-1, 2, 1)))

# ---- rows by index

odd("embedding", lambda k: call(k.x("ab"), k.index("c", "a")), lambda k: call(k.x("ab"), k.index("", "a")),
    lambda k: call(k.x("ab"), k.index("bc", "a")), lambda k: call(k.x("ab"), k.index("0", "a")),
    lambda k: call(k.x("ab"), k.index("c", "a"), 0))
odd("sinter.row_numbers.default", *[
    lambda k, s=s: call(k.index(s, "a"), lambda x, index: x.shape[0], given=(k.x("a"),))
    for s in ("", "b", "bc", "0")])
odd("embedding_dense_backward", *[
    lambda k, s=s, padding=padding: call(k.x(s + "b"), k.index(s, "4"), 4, padding, False)
    for s in ("", "c", "ac", "0") for padding in (-1, 0, 2)],
    lambda k: call(k.x("cb"), k.index("c", "4"), 4, -1, True))
odd("sort", *with_numbers(". a ab", (), (0, True)), *with_numbers("a4", (1,)))
odd("sort.stable", *[lambda k, dim=dim: call(k.x("a4", torch.int32), stable=True, dim=dim) for dim in (0, 1)])
odd("topk", *with_numbers("4 a4", (3,), (2, -1, False)), *with_numbers("a4b", (4, 1),), *with_numbers("ab", (1, 0),))


def ends_of_runs(k: Maker, behind: int = 0) -> Operand:
    """The ends of three runs of "a" rows, one of them of no rows. behind: rows behind the last run."""
    rows = max(k.size("a") - behind, 0)
    return Operand(torch.tensor([rows // 2, rows // 2, rows], dtype=torch.int32))


odd("sinter.sorted_positions.default sinter.sorted_places.default sinter.run_ends.default",
    lambda k: call(k.index("a2", "3"), 3), lambda k: call(k.index("a1", "1"), 2))
odd("sinter.rows_at.default", lambda k: call(k.x("a25"), k.index("a2", "a")), lambda k: call(k.x("a5"), k.index("a2", "a")))
odd("sinter.expert_linear.default", *[lambda k, s=s: call(k.x(s), k.x("345"), k.index("a2", "3")) for s in ("a25", "a5")])
odd("sinter.grouped_mm.default", lambda k: call(k.x("a5"), k.x("354"), ends_of_runs(k, 1)),
    lambda k: call(k.x("5a"), k.x("a4"), ends_of_runs(k)))
# Rows behind the last run have no defined numbers in eager.
odd("_grouped_mm", *[lambda k, a=a, b=b: call(k.x(a, torch.bfloat16), k.x(b, torch.bfloat16), ends_of_runs(k))
                     for a, b in (("a8", "388"), ("8a", "a8"))])
odd("index_select", *[lambda k, s=s, axis=axis, i=i: call(k.x(s), axis, k.index(i, "1"))
                      for s, axis in (("", 0), ("", -1), ("a", 0), ("ab", 0), ("ab", 1), ("abc", -2))
                      for i in ("", "1", "c", "0")])


def indexed(k: Maker, x: str, *indices: str | None) -> Call:
    """x[indices]: "c" is an index of that shape of the first row, -1 too."""
    return call(k.x(x), [None if i is None else k.index(i.strip("."), "1", -1) for i in indices])


INDICES = (("a", "."), ("a", "c"), ("ab", "c"), ("ab", "."), ("ab", None, "c"), ("ab", "c", "c"),
           ("ab", ".", "c"), ("abc", "b", None, "b"), ("abc", None, "bc"), ("ab", "0"),
           ("abc", None, "c", "1"), ("abc", "a1", "c"), ("abc", None, None, "."))
odd("index.Tensor", *[lambda k, given=given: indexed(k, *given) for given in INDICES],
    lambda k: call(k.x("ab"), [k.mask("a")]), lambda k: call(k.x("ab"), [k.mask("ab")]))


def put(k: Maker, accumulate: bool, values: str, x: str, *indices: str | None) -> Call:
    one = indexed(k, x, *indices)
    return call(*one.args, k.x(values.strip(".")), accumulate)


PUTS = ((".", "a", "."), ("c", "a", "c"), ("cb", "ab", "c"), ("b", "ab", "."), (".", "ab", "c"),
        ("c", "ab", "c", "c"), ("ac", "ab", None, "c"), ("b", "ab", "0"), ("bcc", "abc", "b1", "."),
        ("c", "abc", "b", "b"))
odd("index_put _unsafe_index_put", *[lambda k, n=n, given=given: put(k, n, *given)
                                     for n in (True, False) for given in PUTS],
    lambda k: call(k.x("ab"), [k.mask("ab")], k.x(), False),
    lambda k: call(k.x("ab"), [k.mask("a")], k.x(), True))
odd("index_add", *[lambda k, s=s, axis=axis, i=i, n=n:
                   call(k.x(s[0]), axis, k.index(i, "1"), k.x(s[1]), alpha=n)
                   for s, axis, i in ((("", ""), 0, ""), (("", ""), -1, "1"), (("a", "c"), 0, "c"),
                                      (("ab", "cb"), 0, "c"), (("ab", "ac"), -1, "c"),
                                      (("abc", "abc"), 1, "b"), (("ab", "1b"), 0, ""),
                                      (("ab", "0b"), 0, "0"))
                   for n in (1, 2, 0.5)])
odd("index_copy", *[lambda k, s=s, axis=axis, i=i: call(k.x(s[0]), axis, k.index(i, "1"), k.x(s[1]))
                    for s, axis, i in ((("", ""), 0, ""), (("", "1"), -1, "1"), (("a", "c"), 0, "c"),
                                       (("ab", "cb"), 0, "c"), (("ab", "ac"), -1, "c"),
                                       (("abc", "abc"), 1, "b"), (("ab", "1b"), 0, ""),
                                       (("ab", "0b"), 0, "0"))],
    lambda k: call(k.x("ab"), 1, k.index("1", "b"), k.x("a1")))
odd("index_fill.int_Scalar", *[lambda k, s=s, axis=axis, i=i: call(k.x(s), axis, k.index(i, "1", -1), 2.5)
                               for s, axis, i in (("", 0, ""), ("a", 0, "c"), ("ab", -1, "c"), ("abc", 1, "b"),
                                                  ("ab", 0, ""), ("ab", 0, "0"))])
odd("index_fill.int_Tensor", *[lambda k, s=s, axis=axis, i=i: call(k.x(s), axis, k.index(i, "1", -1), k.x())
                               for s, axis, i in (("", 0, ""), ("ab", -1, "c"), ("ab", 0, "0"))])
GATHERS = (("", "", 0), ("", "", -1), ("a", "", 0), ("", "1", 0), ("a", "c", 0), ("ab", "ab", 0),
           ("ab", "a1", 1), ("ab", "1b", 0), ("abc", "ab1", -1), ("ab", "11", 1), ("ab", "a0", 1),
           ("abc", "1b1", 1), ("ab", "ac", 1))
odd("gather", *[lambda k, s=s, i=i, axis=axis: call(k.x(s), axis, k.index(i, "1"))
                for s, i, axis in GATHERS])
odd("scatter_add", *[lambda k, s=s, i=i, axis=axis: call(k.x(s), axis, k.index(i, "1"), k.x(i))
                     for s, i, axis in GATHERS],
    lambda k: call(k.x("ab"), 1, k.index("a1", "b"), k.x("ab")))

odd("scatter.src", *[lambda k, s=s, i=i, axis=axis: call(k.x(s), axis, k.index(i, "1"), k.x(i))
                     for s, i, axis in GATHERS],
    lambda k: call(k.x("ab"), 1, k.index("a1", "b"), k.x("ab")))
odd("scatter.value", *[lambda k, s=s, i=i, axis=axis: call(k.x(s), axis, k.index(i, "1"), 2.5)
                       for s, i, axis in GATHERS])

# ---- tensors made of sizes

SIZES = (lambda x: list(x.shape), lambda x: [], lambda x: [0, x.shape[0]], lambda x: [1],
         lambda x: [x.shape[0] * x.shape[1]], lambda x: [2, x.shape[1]])


def made(*behind: Any, like: bool = False, **kwargs: Any) -> list[Callable[[Maker], Call]]:
    """Calls with sizes taken from a tensor's sizes; like: the op gets the tensor."""
    if like:
        return [lambda k, sizes=sizes: call(k.x("ab"), sizes, *behind, **kwargs) for sizes in SIZES]
    return [lambda k, sizes=sizes: call(sizes, *behind, given=(k.x("ab"),), **kwargs)
            for sizes in SIZES]


odd("full", *made(2), *made(2.5), *made(True), *made(inf), *made(2, dtype=torch.float16), moves=True)
odd("zeros ones empty.memory_format", *made(), *made(dtype=torch.int64), *made(dtype=torch.bool),
    moves=True)
odd("new_full", *made(2, like=True), *made(-0.5, like=True, dtype=torch.bfloat16), moves=True)
odd("new_zeros new_ones new_empty", *made(like=True), *made(like=True, dtype=torch.int32), moves=True)
odd("full_like", *with_numbers(". a ab", (2,), (-inf,), (True,)),
    lambda k: call(k.x("ab"), 3, dtype=torch.int64), moves=True)
odd("zeros_like ones_like empty_like", *shapes_of(".", "ab"),
    lambda k: call(k.x("ab"), dtype=torch.bool), moves=True)
odd("empty_permuted", lambda k: call(lambda x: list(x.shape), [1, 0], given=(k.x("ab"),)),
    lambda k: call([], []), moves=True)
odd("empty_strided", lambda k: call(lambda x: list(x.shape), lambda x: [1, x.shape[0]],
                                    given=(k.x("ab"),)), lambda k: call([], []), moves=True)
odd("new_empty_strided", lambda k: call(k.x("ab"), lambda x: list(x.shape), lambda x: [1, x.shape[0]]),
    lambda k: call(k.x("ab"), [], []), moves=True)
UNSET |= {"empty.memory_format", "new_empty.default", "empty_like.default", "empty_permuted.default",
          "empty_strided.default", "new_empty_strided.default"}
odd("scalar_tensor", lambda k: call(2), lambda k: call(2.5), lambda k: call(True),
    lambda k: call(nan, dtype=torch.float16), lambda k: call(lambda x: x.shape[0], given=(k.x("ab"),)),
    lambda k: call(3, dtype=torch.int64), moves=True)
SIZE = lambda x: x.shape[0]
odd("arange", lambda k: call(SIZE, given=(k.x("ab"),)), lambda k: call(5), lambda k: call(0),
    lambda k: call(2.5), lambda k: call(4, dtype=torch.float16), lambda k: call(3, dtype=torch.int32),
    lambda k: call(SIZE, dtype=torch.float32, given=(k.x("ab"),)), moves=True)
odd("arange.start", lambda k: call(0, SIZE, given=(k.x("ab"),)), lambda k: call(2, 7),
    lambda k: call(3, 3), lambda k: call(-2, 2), lambda k: call(0.5, 3), lambda k: call(-1.5, 1.0),
    lambda k: call(SIZE, lambda x: x.shape[0] + 3, given=(k.x("ab"),)), moves=True)
odd("arange.start_step", lambda k: call(0, 7, 2), lambda k: call(7, 0, -2), lambda k: call(0, 1, 0.25),
    lambda k: call(5, 5, 1), lambda k: call(0, SIZE, 1, given=(k.x("ab"),)),
    lambda k: call(0, SIZE, 2, given=(k.x("ab"),)), lambda k: call(1.5, 4, 1), lambda k: call(0, 4, 0.5),
    lambda k: call(0, 7, 2, dtype=torch.float32), lambda k: call(0.5, 7, 2, dtype=torch.int64),
    moves=True)
odd("prims.iota.default", *[lambda k, n=n, start=start, step=step, to=to: call(
    n, start=start, step=step, dtype=to, device=torch.device("cpu"), requires_grad=False)
    for n, start, step in ((4, 0, 1), (0, 0, 1), (1, 5, 2), (3, 7, -3)) for to in (torch.int64,
                                                                                  torch.int32)],
    lambda k: call(SIZE, start=0, step=1, dtype=torch.int64, device=torch.device("cpu"),
                   requires_grad=False, given=(k.x("ab"),)), moves=True)
odd("eye", lambda k: call(SIZE, given=(k.x("ab"),)), lambda k: call(0), lambda k: call(1),
    lambda k: call(3, dtype=torch.int64), lambda k: call(2, dtype=torch.bool),
    lambda k: call(2, dtype=torch.bfloat16), moves=True)
odd("eye.m", lambda k: call(SIZE, lambda x: x.shape[1], given=(k.x("ab"),)), lambda k: call(0, 3),
    lambda k: call(2, 0), lambda k: call(1, 4), moves=True)


# ---- running

NUMBERS = {"a": 3, "b": 4, "c": 5, "d": 6, "e": 7, "f": 2}
PRODUCTS = {"a": (2, 3), "b": (4, 5), "c": (2, 2), "d": (3, 2), "e": (2, 7), "f": (5, 2)}
SECOND_PRODUCTS = {"a": (3, 5), "b": (2, 6), "c": (3, 3), "d": (4, 2), "e": (3, 2), "f": (6, 3)}
SECOND = {"a": 5, "b": 2, "c": 4, "d": 3, "e": 9, "f": 8}


def static_makers() -> dict[str, Maker]:
    """The kinds of odd sizes that are numbers."""
    makers = {"plain": Maker(NUMBERS)}
    for letter in "abcef":
        makers[f"{letter}=0"] = Maker({**NUMBERS, letter: 0})
        makers[f"{letter}=1"] = Maker({**NUMBERS, letter: 1})
    makers["all 0"] = Maker(dict.fromkeys(NUMBERS, 0))
    makers["all 1"] = Maker(dict.fromkeys(NUMBERS, 1))
    makers["all 2"] = Maker(dict.fromkeys(NUMBERS, 2))
    for joined in ("all", "first", "rest"):
        makers[f"joined {joined}"] = Maker(PRODUCTS, joined=joined)
    makers["joined alike"] = Maker(dict.fromkeys(NUMBERS, (2, 2)), joined="all")
    makers["joined ones"] = Maker(dict.fromkeys(NUMBERS, (1, 2)), joined="all")
    for memory in ("turned", "transposed", "gaps"):
        makers[memory] = Maker(NUMBERS, memory=memory)
    return makers


def dynamic_makers() -> dict[str, tuple[Maker, Maker]]:
    """The kinds of sizes that change: the sizes of the trace, and others."""
    pair = lambda first, second, **facts: (Maker(first, **facts), Maker(second, **facts))
    makers = {"dynamic": pair(NUMBERS, SECOND),
              "dynamic alike": pair(dict.fromkeys(NUMBERS, 4), dict.fromkeys(NUMBERS, 6))}
    for joined in ("all", "first", "rest"):
        makers[f"dynamic joined {joined}"] = pair(PRODUCTS, SECOND_PRODUCTS, joined=joined)
    makers["dynamic joined alike"] = pair(dict.fromkeys(NUMBERS, (2, 2)),
                                          dict.fromkeys(NUMBERS, (3, 3)), joined="all")
    return makers


def name_of(op: Any) -> str:
    return str(op).removeprefix("aten.")


@dataclass
class Bound:
    """A call with its tensors, which are the graph's inputs."""

    name: str
    what: str  # the kind of call, for messages
    call: Call
    operands: list[Operand]
    places: tuple  # of the operands in (args, kwargs, given)

    @property
    def data(self) -> list[torch.Tensor]:
        return [operand.data for operand in self.operands]

    @property
    def memory(self) -> tuple:
        """How its operands lie in memory."""
        return tuple((one.data.shape, one.data.stride(), one.groups, one.is_turned)
                     for one in self.operands)

    def run(self, data: list[torch.Tensor], is_double: bool = False) -> list:
        """The op's results, as a list."""
        tensors = iter([one.tensor(data[i]) for i, one in enumerate(self.operands)])
        is_operand = lambda value: isinstance(value, Operand)
        parts = tree_map(lambda value: next(tensors) if is_operand(value) else value,
                         (self.call.given, self.call.args, self.call.kwargs),
                         is_leaf=is_operand)
        known = [leaf for leaf in tree_flatten(parts)[0] if is_tensor(leaf)]
        given, args, kwargs = tree_map(
            lambda value: value(*known) if type(value).__name__ == "function" else value, parts)
        if is_double:
            args, kwargs = tree_map(to_double, (args, kwargs))
        first = [kwargs.pop("first")] if "first" in kwargs else []
        results = tree_flatten(op_of_name[self.name](*first, *args, **kwargs))[0]
        return [worked(x) if self.name in MOVES and is_tensor(x) else x for x in results]


def worked(x: torch.Tensor) -> torch.Tensor:
    """An op behind one that is no work by itself."""
    return aten.logical_not.default(x) if x.dtype == torch.bool else aten.mul.Scalar(x, 2)


def decomposed() -> Iterator[Callable]:
    """The ops of the table without a conversion, for which torch has a decomposition."""
    for name in TABLE:
        packet, _, overload = name.partition(".")
        op = getattr(getattr(aten, packet, None), overload, None)
        if op in decompositions():
            yield op


op_of_name = {name_of(op): op for op in (*CONVERSIONS, *decomposed())}


def bound(name: str, what: str, make: Callable[[Maker], Call], maker: Maker, seed: int) -> Bound:
    torch.manual_seed(seed)
    one = make(replace(maker, state={"operands": 0}))
    parts = (one.given, one.args, one.kwargs)
    operands = [leaf for leaf in tree_flatten(
        parts, is_leaf=lambda value: isinstance(value, Operand))[0] if isinstance(leaf, Operand)]
    return Bound(name, what, one, operands, parts)


@dataclass
class Failure:
    name: str
    what: str
    detail: str

    def __str__(self) -> str:
        return f"{self.name} [{self.what}]: {self.detail}"


class Outcome:
    """Counts of calls that Sinter took and refused, and the wrong ones."""

    def __init__(self) -> None:
        self.run = self.skipped = 0
        self.refused: dict[str, int] = {}
        self.wrong: list[Failure] = []


def eager_of(one: Bound) -> tuple[list, list] | None:
    """Results of eager in the call's type and in float64; None: eager refuses the call."""
    try:
        expected = one.run([x.clone() for x in one.data])
    except Exception:
        return None
    if any(is_tensor(x) and x.is_complex() for x in expected):
        return None
    try:
        exact = one.run([x.clone() for x in one.data], is_double=True)
    except Exception:
        exact = expected
    if len(exact) != len(expected):
        exact = expected
    return expected, exact


def compiled_batch(calls: list[Bound], mode: str) -> tuple[Callable, list, Any]:
    """One graph of all calls. Returns its function, the ops in eager, and the traced graph."""
    data = [x for one in calls for x in one.data]
    def function(*tensors):
        results, at = [], 0
        for one in calls:
            results.append(one.run(list(tensors[at:at + len(one.operands)])))
            at += len(one.operands)
        return results

    graph = make_fx(function, decompositions(), tracing_mode=mode, pre_dispatch=True)(*[x.clone() for x in data])
    graph.graph.eliminate_dead_code()
    report.reset()
    run = compile_aten(graph, OPTIONS, "odd")
    return run, report.REPORTS[-1].eager, graph


def differences(one: Bound, results: list, eager: tuple[list, list]) -> str | None:
    expected, exact = eager
    if len(results) != len(expected):
        return f"{len(results)} results, eager has {len(expected)}"
    for ours, theirs, double in zip(results, expected, exact):
        if not is_tensor(theirs):
            continue
        if ours is None:
            return "no result"
        if one.name in UNSET:
            if (ours.dtype, ours.shape) != (theirs.dtype, theirs.shape):
                return f"{ours.dtype}{list(ours.shape)}, eager has {theirs.dtype}{list(theirs.shape)}"
            continue
        detail = close(ours, theirs, double if is_tensor(double) else theirs)
        if detail:
            return detail
    return None


def run_calls(calls: list[Bound], outcome: Outcome, seconds: list[list[Bound]] = ()) -> None:
    """Compiles all calls as one graph; where that fails, each half of them. seconds: the same calls
    with other sizes, for which the graph is run too."""
    eagers = {id(one): eager_of(one) for one in calls}
    kept = [i for i, one in enumerate(calls) if eagers[id(one)] is not None]
    outcome.skipped += len(calls) - len(kept)
    calls = [calls[i] for i in kept]
    seconds = [[others[i] for i in kept] for others in seconds]
    if not calls:
        return
    mode = "symbolic" if seconds else "fake"
    torch.manual_seed(0)
    try:
        run, eager_ops, graph = compiled_batch(calls, mode)
        results = unpacked(run(*[x for one in calls for x in one.data]), calls, eagers)
        wrong = [(one, differences(one, ours, eagers[id(one)])) for one, ours in zip(calls, results)]
        for others in seconds:
            if seconds_fit(graph, others):
                theirs = {id(one): eager_of(one) for one in others}
                if all(theirs.values()):
                    results = unpacked(run(*[x for one in others for x in one.data]), others, theirs)
                    wrong += [(one, differences(one, ours, theirs[id(one)]))
                              for one, ours in zip(others, results)]
            elif len(calls) > 1:
                raise SizesSpecialized
    except Exception as error:
        if len(calls) == 1:
            if TOO_LARGE in str(error):
                outcome.refused[TOO_LARGE] = outcome.refused.get(TOO_LARGE, 0) + 1
            elif not cannot_trace(calls[0], mode):
                outcome.wrong.append(Failure(calls[0].name, calls[0].what, described(error)))
            else:
                outcome.skipped += 1
            return
        half = len(calls) // 2
        for part in (slice(0, half), slice(half, None)):
            run_calls(calls[part], outcome, [others[part] for others in seconds])
        return
    outcome.run += len(calls)
    for op in eager_ops:
        outcome.refused[op.reason] = outcome.refused.get(op.reason, 0) + 1
    outcome.wrong += [Failure(one.name, one.what, detail) for one, detail in wrong if detail]


def run_in_parts(calls: list[Bound], outcome: Outcome) -> None:
    """Torch's partitioner takes more than twice the time for a graph of twice the size."""
    for begin in range(0, len(calls), MOST_TOGETHER):
        run_calls(calls[begin:begin + MOST_TOGETHER], outcome)


class SizesSpecialized(Exception):
    """A graph that was traced with some sizes does not hold for the others."""


def described(error: BaseException) -> str:
    place = error.__traceback__
    while place.tb_next is not None:
        place = place.tb_next
    code = place.tb_frame.f_code
    return (f"{type(error).__name__}: {str(error)[:300]} "
            f"({code.co_filename.rsplit('/', 1)[-1]}:{place.tb_lineno})")


def cannot_trace(one: Bound, mode: str) -> bool:
    """Whether torch itself cannot make a graph of the call."""
    try:
        make_fx(lambda *tensors: one.run(list(tensors)), tracing_mode=mode,
                pre_dispatch=True)(*[x.clone() for x in one.data])
        return False
    except Exception:
        return True


def unpacked(results: Any, calls: list[Bound], eagers: dict) -> list[list]:
    flat, at, lists = tree_flatten(results, is_leaf=lambda x: x is None)[0], 0, []
    for one in calls:
        count = len(eagers[id(one)][0])
        lists.append(flat[at:at + count])
        at += count
    assert at == len(flat), (at, len(flat))
    return lists


def seconds_fit(graph: Any, others: list[Bound]) -> bool:
    """Whether a graph that was traced with other sizes holds for these."""
    nodes = [node.meta["val"] for node in graph.graph.nodes if node.op == "placeholder"]
    environment = next((size.node.shape_env for fake in nodes if is_tensor(fake)
                        for size in fake.shape if isinstance(size, torch.SymInt)), None)
    if environment is None:
        return False
    values = {}
    data = [x for one in others for x in one.data]
    for fake, x in zip(nodes, data):
        for size, number in zip(fake.shape, x.shape):
            if isinstance(size, torch.SymInt) and size.node.expr.is_symbol:
                if values.setdefault(size.node.expr, number) != number or number < 2:
                    return False
            elif not isinstance(size, torch.SymInt) and int(size) != number:
                return False
    for fake, x in zip(nodes, data):
        for size, number in zip(fake.shape, x.shape):
            if isinstance(size, torch.SymInt) and int(size.node.expr.xreplace(values)) != number:
                return False
    for symbol, expression in environment.replacements.items():  # of symbols that torch merged
        values.setdefault(symbol, environment.replace(expression).xreplace(values))
    return all(bool(guard.expr.xreplace(values)) for guard in environment.guards)


def run_op(name: str, kinds: Iterable[str] | None = None, most: int | None = None) -> Outcome:
    """All odd calls of an op. kinds: some of the kinds of `static_makers` and `dynamic_makers`; most: the largest
    number of calls of a kind; each kind has other calls."""
    outcome = Outcome()
    makers = list(enumerate(TABLE[name]))
    chosen = lambda kind: kinds is None or kind in kinds
    order = [*static_makers(), *dynamic_makers()]

    def numbers_of(kind: str) -> list[tuple[int, Callable]]:
        step = max(1, -(-len(makers) // most)) if most else 1
        return makers[order.index(kind) % step::step]

    statics: dict[tuple, Bound] = {}  # a call that uses no letter that a kind changes comes once
    for kind, maker in static_makers().items():
        for i, make in numbers_of(kind) if chosen(kind) else ():
            one = bound(name, f"{kind}, call {i}", make, maker, i)
            statics.setdefault((i, one.memory), one)
    run_in_parts(list(statics.values()), outcome)
    for kind, pair in dynamic_makers().items():
        if chosen(kind):
            first, second = [[bound(name, f"{kind}, call {i}", make, maker, i)
                              for i, make in numbers_of(kind)] for maker in pair]
            run_calls(first, outcome, [second])
    return outcome


def run_types(name: str, all_pairs: bool = False) -> Outcome:
    """Calls of an elementwise op in all element types, with special numbers, and with operands of
    different types."""
    outcome, calls = Outcome(), []
    for dtype in DTYPES:
        for special in (False, True):
            if special and not dtype.is_floating_point:
                continue
            maker = Maker(NUMBERS, dtype=dtype, is_special=special)
            calls += [bound(name, f"{dtype}{', special' if special else ''}, call {i}", make, maker, i)
                      for i, make in enumerate(TABLE[name])]
    for a in DTYPES:
        for b in DTYPES if all_pairs else DTYPES[:6]:
            if a == b:
                continue
            for shapes in (("ab", "ab"), ("ab", ""), ("", "b")):
                one = pair_of_types(name, shapes, a, b)
                if one is not None:
                    calls.append(one)
    run_in_parts(calls, outcome)
    return outcome


def pair_of_types(name: str, shapes: tuple[str, str], a: torch.dtype, b: torch.dtype) -> Bound | None:
    """A call of an op of two tensors."""
    if TABLE[name][:len(PAIRS)] != PAIRS:
        return None
    make = lambda k: call(k.x(shapes[0], a), k.x(shapes[1], b))
    return bound(name, f"{a} {list(shapes[0])} and {b} {list(shapes[1])}", make, Maker(NUMBERS), 0)


MOST_SHOWN = 6  # failures of an op


def main() -> int:
    warnings.simplefilter("ignore")
    names = sys.argv[1:] or list(TABLE)
    status = 0
    for name in names:
        if name not in op_of_name:
            continue
        outcomes = [run_op(name)] + ([run_types(name, True)] if name in ELEMENTWISE else [])
        wrong = [one for outcome in outcomes for one in outcome.wrong]
        refused = {reason: count for outcome in outcomes for reason, count in outcome.refused.items()}
        print(f"{name} run={sum(one.run for one in outcomes)} "
              f"skipped={sum(one.skipped for one in outcomes)} "
              f"refused={sum(refused.values())} wrong={len(wrong)}", flush=True)
        for failure in wrong[:MOST_SHOWN]:
            print(f"    WRONG [{failure.what}]: {failure.detail}".replace("\n", " | ")[:400], flush=True)
        status = 1 if wrong else status
    return status


if __name__ == "__main__":
    sys.exit(main())
