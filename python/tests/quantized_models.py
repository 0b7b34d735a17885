"""Writes tiny models with quantized weights, in every layout that the library reads.

    python quantized_models.py FOLDER     writes all of them, FOLDER/FAMILY/FORMAT

It follows the published descriptions of the layouts with NumPy alone. Codes, scales and zero points
are drawn, not rounded from weights, so that each value of a code occurs. `write_model` writes a
folder of a format; `write_plain` the same model with its weights as float32: each is
scale * (code - zero), computed in float64 and rounded once.
"""

from __future__ import annotations

import copy
import dataclasses
import json
import sys
import zlib
from pathlib import Path
from typing import Callable

import ml_dtypes
import numpy as np

DTYPES = {
    np.dtype(np.float32): "F32",
    np.dtype(np.float16): "F16",
    np.dtype(ml_dtypes.bfloat16): "BF16",
    np.dtype(ml_dtypes.float8_e4m3fn): "F8_E4M3",
    np.dtype(np.int8): "I8",
    np.dtype(np.uint8): "U8",
    np.dtype(np.int32): "I32",
    np.dtype(np.int64): "I64",
}
AWQ_ORDER = [0, 2, 4, 6, 1, 3, 5, 7]


def write_safetensors(path: Path, tensors: dict[str, np.ndarray]) -> None:
    header, data = {}, bytearray()
    for name, array in sorted(tensors.items(), key=lambda item: (-item[1].itemsize, item[0])):
        raw = np.ascontiguousarray(array).tobytes()
        header[name] = {
            "dtype": DTYPES[array.dtype],
            "shape": list(array.shape),
            "data_offsets": [len(data), len(data) + len(raw)],
        }
        data += raw
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(len(text).to_bytes(8, "little") + text + bytes(data))


def read_safetensors(path: Path) -> dict[str, np.ndarray]:
    data = path.read_bytes()
    length = int.from_bytes(data[:8], "little")
    types = {name: dtype for dtype, name in DTYPES.items()}
    tensors = {}
    for name, entry in json.loads(data[8 : 8 + length]).items():
        if name != "__metadata__":
            begin, end = (8 + length + offset for offset in entry["data_offsets"])
            array = np.frombuffer(data[begin:end], types[entry["dtype"]])
            tensors[name] = array.reshape(entry["shape"])
    return tensors


def pack(fields: np.ndarray, bits: int, axis: int) -> np.ndarray:
    """Unsigned fields along `axis` as a dense stream of bits in int32 words, the first field lowest."""
    moved = np.moveaxis(fields.astype(np.uint64), axis, -1)
    count = moved.shape[-1]
    stream = np.zeros((*moved.shape[:-1], -(-count * bits // 32) * 32), np.uint8)
    for bit in range(bits):
        stream[..., bit : count * bits : bits] = (moved >> np.uint64(bit)) & np.uint64(1)
    words = np.packbits(stream, axis=-1, bitorder="little").view("<i4")
    return np.ascontiguousarray(np.moveaxis(words, -1, axis))


def drawn_scales(random: np.random.Generator, shape: tuple[int, ...], dtype, codes: float):
    """Scales that give weights of about 0.08 to codes of about `codes`."""
    return (0.08 / codes * random.uniform(0.5, 1.5, shape)).astype(dtype)


def per_input(values: np.ndarray, groups: np.ndarray) -> np.ndarray:
    """values [out, G] as [out, in]: column i has the values of group groups[i]."""
    return values.astype(np.float64)[:, groups]


def groups_of(inputs: int, group: int) -> np.ndarray:
    return np.arange(inputs) // (group if group > 0 else inputs)


Tensors = dict[str, np.ndarray]
Drawn = tuple[Tensors, np.ndarray]  # tensors by their ends, and the weights in float64


def draw_gptq(random, out, inputs, *, bits, group, version, symmetric, act_order) -> Drawn:
    """version: what the zero points are stored as, z - 1 (1) or z (2)."""
    groups = groups_of(inputs, group)
    if act_order:
        groups = random.permutation(groups)
    count = int(groups.max()) + 1
    codes = random.integers(0, 2**bits, (out, inputs))
    stored = random.integers(0, 2**bits, (out, count))
    if symmetric:
        stored[:] = 2 ** (bits - 1) - (version == 1)
    zeros = stored + (version == 1)
    scales = drawn_scales(random, (out, count), np.float16, 2**bits / 3.5)
    tensors = {
        "qweight": pack(codes.T, bits, 0),
        "qzeros": pack(stored.T, bits, 1),
        "scales": scales.T,
        "g_idx": groups.astype(np.int32),
    }
    return tensors, per_input(scales, groups) * (codes - per_input(zeros, groups))


def draw_awq(random, out, inputs, *, group) -> Drawn:
    groups = groups_of(inputs, group)
    count = int(groups.max()) + 1
    codes = random.integers(0, 16, (out, inputs))
    zeros = random.integers(0, 16, (out, count))
    scales = drawn_scales(random, (out, count), np.float16, 16 / 3.5)

    def interleaved(fields: np.ndarray) -> np.ndarray:
        return fields.reshape(len(fields), out // 8, 8)[..., AWQ_ORDER].reshape(len(fields), out)

    tensors = {
        "qweight": pack(interleaved(codes.T), 4, 1),
        "qzeros": pack(interleaved(zeros.T), 4, 1),
        "scales": scales.T,
    }
    return tensors, per_input(scales, groups) * (codes - per_input(zeros, groups))


def draw_packed(random, out, inputs, *, bits, group, symmetric, dtype, act_order=False) -> Drawn:
    groups = groups_of(inputs, group)
    if act_order:
        groups = random.permutation(groups)
    count = int(groups.max()) + 1
    half = 2 ** (bits - 1)
    codes = random.integers(-half, half, (out, inputs))
    zeros = random.integers(-half, half, (out, count)) * (not symmetric)
    scales = drawn_scales(random, (out, count), dtype, 2**bits / 3.5)
    tensors = {
        "weight_packed": pack(codes + half, bits, 1),
        "weight_scale": scales,
        "weight_shape": np.array([out, inputs], np.int64),
    }
    if not symmetric:
        tensors["weight_zero_point"] = pack(zeros + half, bits, 0)
    if act_order:
        tensors["weight_g_idx"] = groups.astype(np.int32)
    return tensors, per_input(scales, groups) * (codes - per_input(zeros, groups))


def draw_int8(random, out, inputs, *, per_tensor=False, symmetric=True) -> Drawn:
    rows = 1 if per_tensor else out
    codes = random.integers(-128, 128, (out, inputs)).astype(np.int8)
    zeros = random.integers(-20, 20, (rows, 1)).astype(np.int8) * np.int8(not symmetric)
    scales = drawn_scales(random, (rows, 1), ml_dtypes.bfloat16, 74)
    tensors = {"weight": codes, "weight_scale": scales[:, 0] if per_tensor else scales}
    if not symmetric:
        tensors["weight_zero_point"] = zeros[:, 0] if per_tensor else zeros
    return tensors, scales.astype(np.float64) * (codes.astype(np.float64) - zeros)


def draw_e4m3(random, out, inputs) -> np.ndarray:
    """Every number of e4m3 can occur; its two codes of NaN cannot."""
    codes = random.integers(0, 255, (out, inputs)).astype(np.uint8)
    codes[codes == 0x7F] = 0x7E
    values = codes.view(ml_dtypes.float8_e4m3fn)
    # Large numbers are rare, as they are in weights.
    large = (np.abs(values.astype(np.float32)) > 32) & (random.random((out, inputs)) < 0.98)
    return np.where(large, ml_dtypes.float8_e4m3fn(1.5), values)


def draw_float8(random, out, inputs, *, strategy) -> Drawn:
    codes = draw_e4m3(random, out, inputs)
    shape = {"tensor": (1,), "channel": (out, 1), "block": (-(-out // 128), -(-inputs // 128))}
    scales = drawn_scales(random, shape[strategy], np.float32, 8)
    rows = np.arange(out) // 128 if strategy == "block" else np.zeros(out, int)
    if strategy == "channel":
        rows = np.arange(out)
    each = scales.reshape(-1, 1) if strategy != "block" else scales
    columns = np.arange(inputs) // 128 if strategy == "block" else np.zeros(inputs, int)
    weights = each.astype(np.float64)[rows][:, columns] * codes.astype(np.float64)
    return {"weight": codes, "weight_scale": scales}, weights


def draw_inverse(random, out, inputs) -> Drawn:
    tensors, weights = draw_float8(random, out, inputs, strategy="block")
    return {"weight": tensors["weight"], "weight_scale_inv": tensors["weight_scale"]}, weights


E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6], np.float64)


def draw_float4(random, out, inputs, *, layout) -> Drawn:
    """layout: nvfp4 (compressed-tensors), modelopt, or mxfp4."""
    group = 32 if layout == "mxfp4" else 16
    groups = groups_of(inputs, group)
    codes = random.integers(0, 16, (out, inputs)).astype(np.uint8)
    values = np.where(codes < 8, 1.0, -1.0) * E2M1[codes & 7]
    pairs = codes[:, ::2] | codes[:, 1::2] << 4
    shape = (out, int(groups.max()) + 1)
    if layout == "mxfp4":
        exponents = random.integers(120, 124, shape).astype(np.uint8)
        tensors = {"weight_packed": pairs, "weight_scale": exponents}
        return tensors, per_input(np.exp2(exponents.astype(np.float64) - 127), groups) * values
    parts = random.uniform(64, 448, shape).astype(ml_dtypes.float8_e4m3fn)
    if layout == "modelopt":
        factor = np.array(1.0e-4, np.float32)
        scales = parts.astype(np.float32) * factor
        tensors = {"weight": pairs, "weight_scale": parts, "weight_scale_2": factor}
    else:
        factor = np.array([8000.0], np.float32)
        scales = parts.astype(np.float32) / factor
        tensors = {"weight_packed": pairs, "weight_scale": parts, "weight_global_scale": factor}
    return tensors, per_input(scales, groups) * values


def gptq_config(bits, group, symmetric, act_order, said) -> dict:
    return {
        "quant_method": "gptq",
        "bits": bits,
        "group_size": group,
        "desc_act": act_order,
        "sym": symmetric,
        "damp_percent": 0.01,
        "true_sequential": True,
        "static_groups": False,
        **({"checkpoint_format": said} if said else {}),
    }


def compressed_config(layout: str, weights: dict, activations: dict | None = None) -> dict:
    group = {"targets": ["Linear"], "weights": weights, "input_activations": activations}
    return {
        "quant_method": "compressed-tensors",
        "format": layout,
        "quantization_status": "compressed",
        "config_groups": {"group_0": {**group, "output_activations": None}},
        "ignore": ["lm_head"],
        "kv_cache_scheme": None,
        "global_compression_ratio": None,
    }


def compressed_weights(bits, kind, strategy, *, group=None, symmetric=True, **more) -> dict:
    return {
        "num_bits": bits,
        "type": kind,
        "strategy": strategy,
        "group_size": group,
        "symmetric": symmetric,
        "dynamic": False,
        "actorder": None,
        "block_structure": None,
        "observer": "minmax",
        "observer_kwargs": {},
        **more,
    }


DYNAMIC_TOKENS = {"num_bits": 8, "type": "int", "strategy": "token", "dynamic": True}


@dataclasses.dataclass(frozen=True)
class Format:
    config: dict
    draw: Callable[..., Drawn]
    even: bool = False  # extents are multiples of 8, as the layout asks for
    dtype: str = "float16"


def gptq(bits, group, *, version=1, said="gptq", symmetric=True, act_order=False) -> Format:
    def draw(random, out, inputs):
        return draw_gptq(random, out, inputs, bits=bits, group=group, version=version,
                         symmetric=symmetric, act_order=act_order)

    return Format(gptq_config(bits, group, symmetric, act_order, said), draw, even=True)


def packed(bits, group, *, symmetric=True, dtype=np.float16, act_order=None) -> Format:
    def draw(random, out, inputs):
        return draw_packed(random, out, inputs, bits=bits, group=group, symmetric=symmetric,
                           dtype=dtype, act_order=act_order == "group")

    strategy = "group" if group > 0 else "channel"
    weights = compressed_weights(bits, "int", strategy, group=group if group > 0 else None,
                                 symmetric=symmetric, actorder=act_order)
    return Format(compressed_config("pack-quantized", weights), draw)


def int8(strategy="channel", *, symmetric=True) -> Format:
    def draw(random, out, inputs):
        return draw_int8(random, out, inputs, per_tensor=strategy == "tensor",
                         symmetric=symmetric)

    weights = compressed_weights(8, "int", strategy, symmetric=symmetric)
    return Format(compressed_config("int-quantized", weights, DYNAMIC_TOKENS), draw,
                  dtype="bfloat16")


def float8(strategy) -> Format:
    def draw(random, out, inputs):
        return draw_float8(random, out, inputs, strategy=strategy)

    more = {"block_structure": [128, 128]} if strategy == "block" else {}
    weights = compressed_weights(8, "float", strategy, **more)
    return Format(compressed_config("float-quantized", weights, {**DYNAMIC_TOKENS, "type": "float"}),
                  draw, dtype="bfloat16")


def float4(layout) -> Format:
    def draw(random, out, inputs):
        return draw_float4(random, out, inputs, layout=layout)

    if layout == "modelopt":
        config = {"quant_method": "modelopt", "quant_algo": "NVFP4", "ignore": ["lm_head"]}
    elif layout == "nvfp4":
        weights = compressed_weights(4, "float", "tensor_group", group=16)
        config = compressed_config("nvfp4-pack-quantized", weights)
    else:
        weights = compressed_weights(4, "float", "group", group=32)
        config = compressed_config("mxfp4-pack-quantized", weights)
    return Format(config, draw, even=True, dtype="bfloat16")


FORMATS: dict[str, Format] = {
    "gptq": gptq(4, 32),
    "gptq-8": gptq(8, 32),
    "gptq-row": gptq(4, -1),
    "gptq-zeros": gptq(4, 16, symmetric=False),
    "gptq-8-zeros": gptq(8, 16, symmetric=False),
    "gptq-v2": gptq(4, 32, version=2, said="gptq_v2"),
    "gptq-v2-zeros": gptq(4, 32, version=2, said="gptq_v2", symmetric=False),
    "gptq-says-v1-is-v2": gptq(4, 32, version=2, said="gptq"),
    "gptq-says-v2-is-v1": gptq(4, 32, version=1, said="gptq_v2"),
    "gptq-says-nothing": gptq(4, 32, said=None),
    "gptq-act-order": gptq(4, 32, act_order=True),
    "gptq-act-order-zeros": gptq(4, 16, act_order=True, symmetric=False),
    "awq": Format(
        {"quant_method": "awq", "version": "gemm", "bits": 4, "group_size": 32,
         "zero_point": True, "modules_to_not_convert": None},
        lambda random, out, inputs: draw_awq(random, out, inputs, group=32),
        even=True,
    ),
    "packed": packed(4, 32),
    "packed-zeros": packed(4, 16, symmetric=False),
    "packed-channel": packed(4, 0, dtype=ml_dtypes.bfloat16),
    "packed-channel-zeros": packed(4, 0, symmetric=False),
    "packed-8": packed(8, 32, dtype=np.float32),
    "packed-8-zeros": packed(8, 32, symmetric=False),
    "packed-8-channel": packed(8, 0),
    "packed-act-order": packed(4, 16, act_order="group"),
    "packed-act-order-zeros": packed(4, 16, act_order="group", symmetric=False),
    "packed-static-order": packed(4, 32, act_order="weight"),
    "int8": int8(),
    "int8-zeros": int8(symmetric=False),
    "int8-tensor": int8("tensor"),
    "float8": float8("channel"),
    "float8-tensor": float8("tensor"),
    "float8-block": float8("block"),
    "nvfp4": float4("nvfp4"),
    "nvfp4-modelopt": float4("modelopt"),
    "mxfp4": float4("mxfp4"),
    "fp8": Format(
        {"quant_method": "fp8", "fmt": "e4m3", "activation_scheme": "dynamic",
         "weight_block_size": [128, 128], "modules_to_not_convert": ["lm_head"]},
        draw_inverse,
        dtype="bfloat16",
    ),
}


@dataclasses.dataclass(frozen=True)
class Sizes:
    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    ffn: int
    vocabulary: int = 61
    layers: int = 2

    @property
    def q(self) -> int:
        return self.heads * self.head_dim

    @property
    def kv(self) -> int:
        return self.kv_heads * self.head_dim


# Extents that no group divides; the last group of a row is short.
EVEN = Sizes(hidden=40, heads=4, kv_heads=2, head_dim=12, ffn=72)
ODD = Sizes(hidden=37, heads=3, kv_heads=1, head_dim=6, ffn=53)
# More than one block of 128 along both axes, the last ones incomplete.
LARGE = Sizes(hidden=148, heads=4, kv_heads=2, head_dim=38, ffn=133, layers=1)


def family_sizes(family: str, sizes: Sizes) -> Sizes:
    """Some families have no head_dim of their own: hidden is heads * head_dim."""
    if family in ("qwen2", "phi3", "qwen2_moe", "granitemoe"):
        return dataclasses.replace(sizes, hidden=sizes.q)
    return sizes


# Families with experts: the directory of a layer's experts and the names of their matrices.
EXPERT_NAMES = {
    "mixtral": ("block_sparse_moe", ("w1", "w3", "w2")),
    "qwen2_moe": ("mlp", ("gate_proj", "up_proj", "down_proj")),
    "granitemoe": ("block_sparse_moe", ()),  # the matrices of all experts in one tensor
}
EXPERTS, CHOSEN = 5, 2


def config_of(family: str, sizes: Sizes) -> dict:
    config = {
        "hidden_size": sizes.hidden,
        "intermediate_size": sizes.ffn,
        "num_attention_heads": sizes.heads,
        "num_key_value_heads": sizes.kv_heads,
        "num_hidden_layers": sizes.layers,
        "vocab_size": sizes.vocabulary,
        "max_position_embeddings": 64,
        "rms_norm_eps": 1e-5,
        "model_type": family,
        "bos_token_id": 1,
        "eos_token_id": 2,
        "tie_word_embeddings": family in ("qwen2", "gemma2"),
    }
    classes = {"llama": "Llama", "qwen2": "Qwen2", "gemma2": "Gemma2", "phi3": "Phi3"}
    config["architectures"] = [classes.get(family, family) + "ForCausalLM"]
    if family == "gemma2":
        config |= {
            "head_dim": sizes.head_dim,
            "hidden_activation": "gelu_pytorch_tanh",
            "attn_logit_softcapping": 50.0,
            "final_logit_softcapping": 30.0,
            "query_pre_attn_scalar": sizes.head_dim,
            "sliding_window": 8,
        }
    else:
        config["hidden_act"] = "silu"
    if family in ("llama", "mixtral"):
        config["head_dim"] = sizes.head_dim
    if family in EXPERT_NAMES:
        count = "num_experts" if family == "qwen2_moe" else "num_local_experts"
        config |= {count: EXPERTS, "num_experts_per_tok": CHOSEN}
        del config["architectures"]
    if family == "qwen2_moe":
        config |= {"moe_intermediate_size": sizes.ffn, "norm_topk_prob": True,
                   "shared_expert_intermediate_size": sizes.ffn + 8}
    if family == "phi3":
        config |= {"original_max_position_embeddings": 64, "pad_token_id": 0}
    return config


def linears_of(family: str, sizes: Sizes) -> list[tuple[str, int, int, bool]]:
    """Name, outputs, inputs, bias of a layer's linears."""
    if family == "phi3":
        return [
            ("self_attn.qkv_proj", sizes.q + 2 * sizes.kv, sizes.hidden, False),
            ("self_attn.o_proj", sizes.hidden, sizes.q, False),
            ("mlp.gate_up_proj", 2 * sizes.ffn, sizes.hidden, False),
            ("mlp.down_proj", sizes.hidden, sizes.ffn, False),
        ]
    biased = family in ("qwen2", "qwen2_moe")
    attention = [
        ("self_attn.q_proj", sizes.q, sizes.hidden, biased),
        ("self_attn.k_proj", sizes.kv, sizes.hidden, biased),
        ("self_attn.v_proj", sizes.kv, sizes.hidden, biased),
        ("self_attn.o_proj", sizes.hidden, sizes.q, False),
    ]
    if family in EXPERT_NAMES:
        return attention + experts_of(family, sizes)
    return attention + [
        ("mlp.gate_proj", sizes.ffn, sizes.hidden, False),
        ("mlp.up_proj", sizes.ffn, sizes.hidden, False),
        ("mlp.down_proj", sizes.hidden, sizes.ffn, False),
    ]


def experts_of(family: str, sizes: Sizes) -> list[tuple[str, int, int, bool]]:
    """The linears of a layer's experts. A tensor with all matrices has the outputs of all experts."""
    place, names = EXPERT_NAMES[family]
    if not names:
        return [(f"{place}.input_linear", EXPERTS * 2 * sizes.ffn, sizes.hidden, False),
                (f"{place}.output_linear", EXPERTS * sizes.hidden, sizes.ffn, False)]

    def expert(part: str, names: tuple[str, ...], ffn: int) -> list[tuple[str, int, int, bool]]:
        inner = [(f"{place}.{part}.{name}", ffn, sizes.hidden, False) for name in names[:2]]
        return inner + [(f"{place}.{part}.{names[2]}", sizes.hidden, ffn, False)]

    linears = [linear for e in range(EXPERTS) for linear in expert(f"experts.{e}", names, sizes.ffn)]
    return linears + (expert("shared_expert", names, sizes.ffn + 8) if family == "qwen2_moe" else [])


def routers_of(family: str) -> list[tuple[str, int]]:
    """Name and outputs of the linears that no format quantizes."""
    if family not in EXPERT_NAMES:
        return []
    place = EXPERT_NAMES[family][0]
    router = "router.layer" if family == "granitemoe" else "gate"
    gate = [(f"{place}.shared_expert_gate", 1)] if family == "qwen2_moe" else []
    return [(f"{place}.{router}", EXPERTS), *gate]


def by_expert(array: np.ndarray, outputs: int) -> np.ndarray:
    """A tensor with a row for each output, of all experts, with an axis of experts; a shape likewise."""
    if array.ndim == 1:
        return np.array([EXPERTS, outputs // EXPERTS, array[1]], array.dtype)
    return array.reshape(EXPERTS, outputs // EXPERTS, -1)


def norms_of(family: str) -> list[str]:
    names = ["input_layernorm", "post_attention_layernorm"]
    if family == "gemma2":
        names += ["pre_feedforward_layernorm", "post_feedforward_layernorm"]
    return names


@dataclasses.dataclass
class Model:
    config: dict
    stored: Tensors  # as the format stores them
    plain: Tensors  # float32
    exact: dict[str, np.ndarray]  # the quantized weights in float64


def draw_model(family: str, name: str, sizes: Sizes | None = None) -> Model:
    """The same model for the same arguments."""
    layout = FORMATS[name]
    if sizes is None:
        blocks = name in ("float8-block", "fp8")
        sizes = LARGE if blocks else EVEN if layout.even else ODD
    sizes = family_sizes(family, sizes)
    random = np.random.default_rng(zlib.crc32(f"{family}/{name}".encode()))
    dtype = np.dtype(np.float16 if layout.dtype == "float16" else ml_dtypes.bfloat16)
    config = config_of(family, sizes) | {
        "dtype": layout.dtype,
        "quantization_config": copy.deepcopy(layout.config),
    }
    model = Model(config, {}, {}, {})

    def unquantized(tensor: str, shape: tuple[int, ...], middle: float, spread: float) -> None:
        values = (middle + spread * random.standard_normal(shape)).astype(dtype)
        model.stored[tensor] = values
        model.plain[tensor] = values.astype(np.float32)

    unquantized("model.embed_tokens.weight", (sizes.vocabulary, sizes.hidden), 0, 0.5)
    centre = 0.0 if family == "gemma2" else 1.0
    for i in range(sizes.layers):
        layer = f"model.layers.{i}."
        for norm in norms_of(family):
            unquantized(f"{layer}{norm}.weight", (sizes.hidden,), centre, 0.05)
        for linear, out, inputs, bias in linears_of(family, sizes):
            tensors, weights = layout.draw(random, out, inputs)
            if linear.endswith("put_linear"):
                tensors = {end: by_expert(array, out) for end, array in tensors.items()}
                weights = by_expert(weights, out)
            for end, array in tensors.items():
                model.stored[f"{layer}{linear}.{end}"] = array
            model.exact[f"{layer}{linear}.weight"] = weights
            model.plain[f"{layer}{linear}.weight"] = weights.astype(np.float32)
            if bias:
                unquantized(f"{layer}{linear}.bias", (out,), 0, 0.1)
        for router, out in routers_of(family):
            unquantized(f"{layer}{router}.weight", (out, sizes.hidden), 0, 0.5)
    unquantized("model.norm.weight", (sizes.hidden,), centre, 0.05)
    if not config["tie_word_embeddings"]:
        unquantized("lm_head.weight", (sizes.vocabulary, sizes.hidden), 0, 0.2)
    return model


def quantize_table(model: Model, name: str) -> None:
    """The embedding table as codes of a format of compressed-tensors; of a tied model the output projection,
    too."""
    layout, table = FORMATS[name], "model.embed_tokens"
    shape = model.stored.pop(f"{table}.weight").shape
    tensors, weights = layout.draw(np.random.default_rng(7), *shape)
    model.stored |= {f"{table}.{end}": array for end, array in tensors.items()}
    model.exact[f"{table}.weight"] = weights
    model.plain[f"{table}.weight"] = weights.astype(np.float32)
    quantization = copy.deepcopy(model.config["quantization_config"])
    model.config["quantization_config"] = quantization
    groups = quantization["config_groups"]
    groups["table"] = dict(next(iter(layout.config["config_groups"].values())), targets=["Embedding"])
    groups["table"]["format"] = layout.config["format"]


def write_folder(folder: Path, config: dict, tensors: Tensors) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config, indent=1) + "\n")
    write_safetensors(folder / "model.safetensors", tensors)
    return folder


def write_model(folder: Path, model: Model) -> Path:
    return write_folder(folder, model.config, model.stored)


def write_plain(folder: Path, model: Model) -> Path:
    """The model without quantization."""
    config = {key: value for key, value in model.config.items() if key != "quantization_config"}
    return write_folder(folder, config | {"dtype": "float32"}, model.plain)


FAMILIES = ("llama", "qwen2", "gemma2", "phi3")

if __name__ == "__main__":
    for family in FAMILIES:
        for name in FORMATS:
            drawn = draw_model(family, name)
            write_model(Path(sys.argv[1]) / family / name, drawn)
            write_plain(Path(sys.argv[1]) / family / (name + "-plain"), drawn)
