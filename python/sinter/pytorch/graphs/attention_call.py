"""scaled_dot_product_attention as one op of a graph, whatever kernel eager would choose.

torch decomposes it where it dispatches it: into the op of the kernel that it chooses for the device and
the arguments, or into products and a softmax of float32. Here it becomes `sinter::attention`.
"""

from __future__ import annotations

import math
import threading
from contextlib import contextmanager
from typing import Iterator, NamedTuple

import torch
import torch.nn.functional as F
from torch._C import DispatchKey
from torch._C._functorch import TransformType
from torch._dispatch.python import enable_python_dispatcher
from torch._functorch.pyfunctorch import temporarily_clear_interpreter_stack
from torch._subclasses import FakeTensorMode
from torch._subclasses.functional_tensor import FunctionalTensor
from torch.autograd import forward_ad
from torch.utils._python_dispatch import _disable_current_modes, is_traceable_wrapper_subclass

from . import library  # registers the ops
from .layout import Layout, hint_of, stride_order

OP = torch.ops.aten.scaled_dot_product_attention.default
DTYPES = (torch.float32, torch.float16, torch.bfloat16)
SEED_RANGE = (-2**31, 2**31)  # of a dropout's seed

# The keys under which torch decomposes the op: below autocast and autograd, or on top of torch.func's
# transforms.
COMPOSITE = DispatchKey.CompositeImplicitAutograd
TRANSFORMS = DispatchKey.FuncTorchDynamicLayerFrontMode
_LOCK = threading.RLock()

KERNELS = ("math", "flash", "mem_efficient", "cudnn")  # as in the names of torch's switches
MAX_PLACINGS = 1024


class Placing(NamedTuple):
    """How eager's result lies in memory. order: of its axes. gap: unused elements behind each row, which
    stem from heads that a kernel pads to a width that it has."""

    order: tuple[int, ...]
    gap: int = 0


_PLACINGS: dict[tuple, Placing] = {}  # of calls of the op, which many layers make alike


@contextmanager
def one_attention() -> Iterator[None]:
    """While torch traces a graph in this context, the op becomes `sinter::attention`, also where it
    stands in torch's functions that are nodes of Dynamo's graph."""
    with _LOCK, enable_python_dispatcher():
        kernels = dict(OP.py_kernels)
        OP.py_kernels.update({COMPOSITE: scaled_dot_product_attention, TRANSFORMS: transformed})
        OP._dispatch_cache.clear()
        try:
            yield
        finally:
            OP.py_kernels.clear()
            OP.py_kernels.update(kernels)
            OP._dispatch_cache.clear()


def scaled_dot_product_attention(*args, **kwargs) -> torch.Tensor:
    """The op below autocast; its entry in a table of decompositions as well. torch's own kernel makes
    what is left to eager, and the errors."""
    if torch._C._functorch.peek_interpreter_stack() is not None or not is_taken(*args, **kwargs):
        return OP._op_dk(COMPOSITE, *args, **kwargs)
    return laid_out(attention(*args, **kwargs), eager_placing(args, kwargs))


def transformed(*args, **kwargs) -> torch.Tensor:
    """The op inside of torch.func's transforms. They stand above autocast, which is left to torch, and
    the op has no forward derivative."""
    levels = torch._C._functorch.get_interpreter_stack()
    if any(level.key() == TransformType.Jvp for level in levels) or not is_taken(*args, **kwargs) \
            or torch.is_autocast_enabled(args[0].device.type) or dropout_of(*args, **kwargs):
        return OP._op_dk(TRANSFORMS, *args, **kwargs)
    return laid_out(attention(*args, **kwargs), eager_placing(args, kwargs))


def is_taken(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, *, scale=None,
             enable_gqa=False) -> bool:
    tensors = [x for x in (query, key, value, attn_mask) if x is not None]
    return (query.dtype in DTYPES and (not dropout_p or takes_dropout(dropout_p, *tensors))
            and not (is_causal and attn_mask is not None)
            and forward_ad._current_level < 0  # the op has no forward derivative
            and all(x.dim() >= 2 and is_plain(x) for x in tensors))


def dropout_of(query, key, value, attn_mask=None, dropout_p=0.0, *args, **kwargs) -> float:
    return dropout_p


def takes_dropout(probability: float, q, k, v, mask=None) -> bool:
    """Whether the kernels of attention and of its gradient leave weights out. They do it by numbers of their own;
    `torch._inductor.config.fallback_random` asks for eager's."""
    from torch._inductor import config  # what has no dropout need not load it

    return 0 < probability < 1 and library.has_gradient_kernel(q, k, v, mask) and not config.fallback_random


def dropout_seed(like: torch.Tensor) -> torch.Tensor:
    """int32 []: which weights an attention's dropout leaves out, of torch's generator."""
    return torch.randint(*SEED_RANGE, (), dtype=torch.int32, device=like.device)


def is_plain(x: torch.Tensor) -> bool:
    """Whether a tensor is no subclass that takes the op apart in its own way."""
    return not x.is_nested and (isinstance(x, FunctionalTensor)
                                or not is_traceable_wrapper_subclass(x))


def attention(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, *, scale=None,
              enable_gqa=False, softcap=0.0) -> torch.Tensor:
    """[..., S, E] of operands [..., S, D], [..., T, D] and [..., T, E], whose leading axes broadcast; the last leading
    axis has the heads."""
    torch._check(key.shape[-2] == value.shape[-2])  # two symbols of torch, one length
    rank = max(x.dim() for x in (query, key, value))
    q, k, v = (x if x.dim() > 2 else x.unsqueeze(0) for x in (query, key, value))
    batch = torch.broadcast_shapes(*(x.shape[:-3] for x in (q, k, v)))
    heads, groups = heads_and_groups(q, k, v, enable_gqa)
    if enable_gqa:
        k, v = (x if x.shape[-3] == groups else x.repeat_interleave(groups // x.shape[-3], -3)
                for x in (k, v))
    q, k, v = (batched(x, batch, count) for x, count in ((q, heads), (k, groups), (v, groups)))
    mask = attn_mask
    if mask is not None and mask.dim() > 3:
        mask = batched(mask, batch if len(batch) > 1 else mask.shape[:-3], mask.shape[-3])
    scale = default_scale(q, scale)
    dropout = (dropout_p, dropout_seed(q)) if dropout_p else ()
    if keeps_log_sum(q, k, v, mask):
        result, _ = AttentionWithLogSum.apply(q, k, v, mask, is_causal, scale, softcap, *dropout)
    elif dropout:  # without a gradient
        result = torch.ops.sinter.attention(q, k, v, mask, is_causal, scale, softcap, *dropout)
    else:
        result = Attention.apply(q, k, v, mask, is_causal, scale, softcap)
    result = result.transpose(1, 2)
    if rank < 4:
        return result.squeeze(0) if rank == 3 else result.squeeze(0).squeeze(0)
    return result if rank == 4 else result.unflatten(0, batch)


class Attention(torch.autograd.Function):
    """`sinter::attention` with its gradient, also inside of torch.func's transforms."""

    generate_vmap_rule = True

    @staticmethod
    def forward(q, k, v, mask, causal, scale, softcap):
        return torch.ops.sinter.attention(q, k, v, mask, causal, scale, softcap)

    @staticmethod
    def setup_context(ctx, inputs, output) -> None:
        *tensors, ctx.causal, ctx.scale, ctx.softcap = inputs
        ctx.save_for_backward(*tensors)

    @staticmethod
    def backward(ctx, grad):
        """grad [B, S, H, E]. A gradient that may be differentiated again is made of torch's ops."""
        mask = ctx.saved_tensors[3]
        given = (grad.transpose(1, 2), *ctx.saved_tensors, ctx.causal, ctx.scale, ctx.softcap)
        function = library.gradients if torch.is_grad_enabled() else torch.ops.sinter.attention_backward
        needed = mask is not None and ctx.needs_input_grad[3]
        return (*function(*given), mask_gradient(*given) if needed else None, None, None, None)


def keeps_log_sum(q, k, v, mask) -> bool:
    """Whether a gradient may be asked for that is computed from the log-sums."""
    return (torch.is_grad_enabled() and any(x.requires_grad for x in (q, k, v))
            and torch._C._functorch.peek_interpreter_stack() is None
            and library.has_gradient_kernel(q, k, v, mask))


class AttentionWithLogSum(torch.autograd.Function):
    """`sinter::attention`, and the log-sums from which its gradient is computed; the mask has none. dropout: its
    probability and its seed."""

    @staticmethod
    def forward(ctx, q, k, v, mask, causal, scale, softcap, *dropout):
        result, log_sum = torch.ops.sinter.attention_with_log_sum(q, k, v, mask, causal, scale, softcap, *dropout)
        ctx.scores = causal, scale, softcap, *dropout[:1]
        ctx.save_for_backward(q, k, v, mask, result, log_sum, *dropout[1:])
        ctx.mark_non_differentiable(log_sum)
        return result, log_sum

    @staticmethod
    def backward(ctx, grad, _):
        """grad [B, S, H, E]. A gradient that may be differentiated again is made of torch's ops."""
        q, k, v, mask, result, log_sum, *seed = ctx.saved_tensors
        grad, operands = grad.transpose(1, 2), (q, k, v, mask, *ctx.scores, *seed)
        if torch.is_grad_enabled():
            grads = library.gradients(grad, *operands)
        else:
            grads = torch.ops.sinter.attention_gradients(grad, result, log_sum, *operands)
        return *grads, *[None] * (len(operands) - 3)


def mask_gradient(grad, q, k, v, mask, causal, scale, softcap) -> torch.Tensor:
    """The gradient of a mask of numbers equals the scores' gradient: P (dP - sum(P dP))."""
    p = library.probabilities(q, k, mask, causal, scale, softcap)
    dp = grad.float() @ library.repeated(v, q).float().transpose(-1, -2)
    return (p * (dp - (p * dp).sum(-1, keepdim=True))).sum_to_size(mask.shape).to(mask.dtype)


def heads_and_groups(q, k, v, enable_gqa: bool) -> tuple:
    """The heads of the query, and the heads that keys and values share; torch repeats keys and values of one head for
    all, and of several heads only with `enable_gqa`."""
    counts = [x.shape[-3] for x in (q, k, v)]
    heads = counts[0] if enable_gqa else torch.broadcast_shapes(*((count,) for count in counts))[0]
    shared = counts[1] == counts[2] and (enable_gqa or counts[1] == 1)
    return heads, counts[1] if shared else heads


def batched(x: torch.Tensor, batch: tuple, heads) -> torch.Tensor:
    """[product of batch, heads, ...] of a tensor whose leading axes broadcast."""
    shape = (*batch, heads, *x.shape[-2:])
    if tuple(x.shape) != shape:
        x = x.expand(shape)
    return x if len(batch) == 1 else x.reshape(math.prod(batch), *shape[-3:])


def default_scale(q: torch.Tensor, scale: float | None) -> float:
    if scale is not None:
        return scale
    return 1.0 / math.sqrt(q.shape[-1]) if q.shape[-1] else 1.0


def laid_out(x: torch.Tensor, placing: Placing) -> torch.Tensor:
    """x with its axes in this order of memory, as a slice of a wider tensor where rows have a gap. A clone has
    the strides of eager's result for axes of one element as well."""
    order, dense = placing.order, x.permute(placing.order)
    gap = placing.gap if isinstance(dense.shape[-1], int) else 0  # another width's gap is not known
    dense = F.pad(dense, (0, gap))[..., :-gap] if gap else dense.clone(memory_format=torch.contiguous_format)
    return dense.permute(Layout(tuple(order)).inverse)


def eager_placing(args: tuple, kwargs: dict) -> Placing:
    """How eager's result lies in memory: it depends on the kernel, which depends on the operands and on
    torch's switches."""
    values = [*args, *kwargs.values()]
    key = (tuple(map(description, values)), tuple(kwargs), torch.is_grad_enabled(),
           *[getattr(torch._C, f"_get_{name}_sdp_enabled")() for name in KERNELS],
           *torch._C._get_sdp_priority_order())
    if key not in _PLACINGS:
        if len(_PLACINGS) >= MAX_PLACINGS:
            _PLACINGS.clear()
        _PLACINGS[key] = placing_of_call(args, kwargs)
    return _PLACINGS[key]


def description(value) -> object:
    """The facts of an operand that choose the kernel; any other argument itself."""
    if not isinstance(value, torch.Tensor):
        return value
    return (*example_strides(value), value.dtype, value.device, value.requires_grad)


def placing_of_call(args: tuple, kwargs: dict) -> Placing:
    with _disable_current_modes(), temporarily_clear_interpreter_stack(), FakeTensorMode():
        example = lambda value: example_of(value) if isinstance(value, torch.Tensor) else value
        return placing_of(OP._op_dk(COMPOSITE, *map(example, args),
                                    **{name: example(value) for name, value in kwargs.items()}))


def placing_of(result: torch.Tensor) -> Placing:
    """The placing of an example's result."""
    order = stride_order(result)
    outer = [axis for axis in order[:-1] if result.shape[axis] > 1]
    width = result.shape[order[-1]]
    return Placing(order, max(result.stride(outer[-1]) - width, 0) if outer and result.numel() else 0)


def example_strides(x: torch.Tensor) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The sizes and the strides that a tensor has in the example."""
    return tuple(tuple([hint_of(number) or 0 for number in numbers]) for numbers in (x.shape, x.stride()))


def example_of(x: torch.Tensor) -> torch.Tensor:
    sizes, strides = example_strides(x)
    return torch.empty_strided(sizes, strides, dtype=x.dtype, device=x.device,
                               requires_grad=x.requires_grad)
