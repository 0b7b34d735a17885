"""Writes the benchmark modules: one .sir file for each pattern, width and element type, for each
reduction over rows, for each attention of a decode step and of a prefill, and for each way of
choosing a token.

    python3 bench/cases/make.py

`PATTERNS` says what is computed, `SPEED` and `NUMERICS` at which widths and types. Rows are a
symbol, so that one file serves every number of tokens, but where they are reduced; the tokens of an
attention see keys of their own, as sequences do. The modules of numerics/ take the norm's
weight and bias as inputs, so that a test can choose them; the others hold them as weights.
"""

import dataclasses
import pathlib

FOLDER = pathlib.Path(__file__).parent


@dataclasses.dataclass(frozen=True)
class Pattern:
    inputs: str  # matrices of [N, WIDTH]
    parameters: str  # vectors of [WIDTH]
    outputs: str
    text: str  # ROWS stands for the matrices' type, ROW for one row's, VECTOR for the vectors'


# GELU by tanh as a framework without the composite would write it.
GELU_TANH = """
%square = mul %x, %x : ROWS
%cube = mul %square, %x : ROWS
%c1 = constant {value = 0.044715} : f32[]
%bent = mul %c1, %cube : ROWS
%inner = add %x, %bent : ROWS
%c2 = constant {value = 0x1.9884533d43651p-1} : f32[]
%scaled = mul %c2, %inner : ROWS
%tanh = tanh %scaled : ROWS
%c3 = constant {value = 0.5} : f32[]
%half = mul %c3, %x : ROWS
%c4 = constant {value = 1} : f32[]
%factor = add %c4, %tanh : ROWS
%y = mul %half, %factor : ROWS
"""

PATTERNS = {
    "gelu_tanh": Pattern("x", "", "y", GELU_TANH),
    "add_layer_norm": Pattern("x r", "weight bias", "sum y", """
%sum = add %x, %r : ROWS
%y = layer_norm %sum, %weight, %bias {eps = 1e-5} : ROWS
"""),
    "layer_norm_add": Pattern("x r", "weight bias", "y", """
%norm = layer_norm %x, %weight, %bias {eps = 1e-5} : ROWS
%y = add %norm, %r : ROWS
"""),
    "add_rms_norm": Pattern("x r", "weight", "sum y", """
%sum = add %x, %r : ROWS
%y = rms_norm %sum, %weight {eps = 1e-5} : ROWS
"""),
    "silu_mul": Pattern("x r", "", "y", """
%gate = silu %x : ROWS
%y = mul %gate, %r : ROWS
"""),
    "softmax": Pattern("x", "", "y", """
%y = softmax %x : ROWS
"""),
    "cumulative_sum": Pattern("x", "", "y", """
%y = cumulative_sum %x {axis = 1} : ROWS
"""),
    "column_sum": Pattern("x", "", "y", """
%sum = reduce_sum %x {axes = [0]} : ROW
%y = reshape %sum : VECTOR
"""),
    # The gradient of a norm's weight: %x is normalized, %before is the sum over other batches.
    "weight_gradient": Pattern("dy x", "before", "y", """
%p = mul %dy, %x : ROWS
%sum = reduce_sum %p {axes = [0]} : ROW
%flat = reshape %sum : VECTOR
%y = add %flat, %before : VECTOR
"""),
}

SPEED = [
    ("gelu_tanh", "f32", [4096, 16384]),
    ("add_layer_norm", "bf16", [2560, 4096, 16384]),
    ("layer_norm_add", "bf16", [2560, 4096, 16384]),
    ("add_rms_norm", "bf16", [2560, 4096, 16384]),
    ("silu_mul", "bf16", [2560, 4096, 16384]),
    ("softmax", "bf16", [1024, 4096, 16384, 32768]),
    ("cumulative_sum", "bf16", [4096]),
]
# Reductions over the rows of [rows, width].
COLUMNS = [("column_sum", "bf16", 16384, 4096), ("weight_gradient", "bf16", 16384, 4096)]
NUMERICS = [(pattern, dtype, [2560])
            for pattern in ("layer_norm_add", "add_layer_norm") for dtype in ("f32", "f16")]


@dataclasses.dataclass(frozen=True)
class Attention:
    heads: int
    kv_heads: int
    width: int
    keys: int  # of each token
    tokens: int
    dtype: str = "bf16"
    extra: str = ""  # attributes

    @property
    def name(self) -> str:
        return f"attention.{self.heads}x{self.width}.{self.kv_heads}.{self.keys}x{self.tokens}.{self.dtype}"


ATTENTIONS = [Attention(heads, kv_heads, width, keys, tokens, dtype)
              for heads, kv_heads, width, dtype in ((32, 32, 128, "bf16"), (32, 32, 80, "f16"), (32, 8, 64, "bf16"))
              for keys, tokens in ((1024, 1), (8192, 1), (1024, 8))]
ATTENTIONS.append(Attention(16, 8, 256, 6144, 1, "bf16", ", softcap = 50.0, window = 4096"))


@dataclasses.dataclass(frozen=True)
class CausalAttention:
    """Packed texts of `length` tokens, each of which sees its text as far as itself, or the last
    `window` tokens of it."""
    heads: int
    kv_heads: int
    width: int
    length: int
    texts: int = 1
    dtype: str = "bf16"
    window: int = 0

    @property
    def name(self) -> str:
        window = f".w{self.window}" if self.window else ""
        return f"causal.{self.heads}x{self.width}.{self.kv_heads}.{self.texts}x{self.length}.{self.dtype}{window}"


CAUSAL_ATTENTIONS = [CausalAttention(32, 32, 128, 512), CausalAttention(32, 32, 128, 2048),
                     CausalAttention(32, 32, 128, 2048, texts=8), CausalAttention(32, 32, 128, 8192),
                     CausalAttention(32, 32, 80, 2048), CausalAttention(32, 8, 64, 2048),
                     CausalAttention(32, 8, 128, 2048), CausalAttention(32, 32, 128, 8192, window=1024),
                     CausalAttention(16, 8, 256, 2048), CausalAttention(32, 32, 128, 2048, dtype="f16")]


@dataclasses.dataclass(frozen=True)
class EncoderAttention:
    """Texts of `length` tokens, each of which sees its whole text, or what a mask shows: random keys
    ("keys"), or all keys of random tiles of 128 tokens and 128 keys ("tiles")."""
    heads: int
    width: int
    length: int
    texts: int
    dtype: str = "f32"
    mask: str = ""

    @property
    def name(self) -> str:
        mask = f".{self.mask}" if self.mask else ""
        return f"encoder.{self.heads}x{self.width}.{self.texts}x{self.length}{mask}.{self.dtype}"

    def mask_text(self) -> tuple[str, list[str]]:
        """The parameter of the entry that the mask is made of, and what makes `mask` of it."""
        if self.mask == "keys":
            return f", %mask: i1[{self.texts}, 1, 1, {self.length}]", []
        tiles = self.length // 128
        wide, whole = [self.texts, 1, tiles, 128, tiles, 128], [self.texts, 1, self.length, self.length]
        return f", %shown: i1[{self.texts}, 1, {tiles}, 1, {tiles}, 1]", [
            f"    %wide = broadcast %shown {{dims = {wide}}} : i1{wide}",
            f"    %mask = reshape %wide {{dims = {whole}}} : i1{whole}"]


ENCODER_ATTENTIONS = [EncoderAttention(8, 64, 128, texts=32), EncoderAttention(12, 64, 1024, texts=4),
                      *(EncoderAttention(16, 64, 2048, texts=4, dtype="bf16", mask=mask) for mask in ("", "keys", "tiles"))]

# temperature, top_k, top_p
CHOICES = {"greedy": (0.0, 0, 1.0), "draw": (1.0, 0, 1.0), "top_k": (1.0, 50, 1.0), "top_p": (1.0, 0, 0.9)}
VOCABULARIES = [32000, 128256]
# Running sums of one long row, and along an axis that is not the last.
SUMS = {"row": ([1, 2**20], 1), "column": ([4096, 8192], 0)}
# Gradients of embeddings: type, updates, columns, rows.
SCATTERS = [("f32", 32768, 768, 50257), ("bf16", 32768, 768, 1024)]
LARGEST_TENSOR = 2**30  # elements; bounds the rows of a module


def module(name: str, width: int, dtype: str, parameters_are_inputs: bool, rows: int | None = None) -> str:
    """A module of `rows` rows, or of a symbol N."""
    pattern = PATTERNS[name]
    matrix, vector = f"{dtype}[{rows or 'N'}, {width}]", f"{dtype}[{width}]"
    shape = f"{rows}x{width}" if rows else str(width)
    lines = [f"// Made by make.py: {name}, {width} elements a row, {dtype}.",
             f"module @{name}_{shape}_{dtype} {{"]
    if not rows:
        lines.append(f"  symbol N in [1, {LARGEST_TENSOR // width}]")
    inputs = [f"%{value}: {matrix}" for value in pattern.inputs.split()]
    for parameter in pattern.parameters.split():
        if parameters_are_inputs:
            inputs.append(f"%{parameter}: {vector}")
        else:
            lines.append(f'  weight %{parameter} : {vector} = file {{tensor = "{parameter}"}}')
    outputs = ", ".join(f"%{value}" for value in pattern.outputs.split())
    lines.append(f"  entry @f({', '.join(inputs)}) -> ({outputs}) {{")
    body = pattern.text.strip().replace("ROWS", matrix)
    body = body.replace("ROW", f"{dtype}[1, {width}]").replace("VECTOR", vector)
    lines += ["    " + line for line in body.splitlines()] + ["  }", "}"]
    return "\n".join(lines) + "\n"


def literal(name: str, dtype: str, values: list[float]) -> str:
    return (f"  weight %{name} : {dtype}[{len(values)}] = "
            f"literal {{dims = [{len(values)}], dtype = {dtype}, values = {values}}}")


def attention_module(case: Attention) -> str:
    tokens, rows = case.tokens, case.tokens * case.keys
    q, cache = f"{case.dtype}[{tokens}, {case.heads * case.width}]", f"{case.dtype}[{rows}, {case.kv_heads * case.width}]"
    attributes = (f"heads = {case.heads}, kv_heads = {case.kv_heads}, "
                  f"scale = {case.width ** -0.5!r}{case.extra}")
    lines = [f"// Made by make.py: attention of tokens that see {case.keys} keys each.",
             f"module @{case.name.replace('.', '_')} {{"]
    for name, offset in (("first", 0), ("last", case.keys - 1)):
        lines.append(literal(name, "i32", [float(case.keys * token + offset) for token in range(tokens)]))
    lines.append(f"  entry @f(%q: {q}, %keys: {cache}, %values: {cache}) -> (%y) {{")
    lines += [f"    %y = attention %q, %keys, %values, %first, %last {{{attributes}}} : {q}", "  }", "}"]
    return "\n".join(lines) + "\n"


def causal_module(case: CausalAttention) -> str:
    tokens = case.texts * case.length
    q = f"{case.dtype}[{tokens}, {case.heads * case.width}]"
    cache = f"{case.dtype}[{tokens}, {case.kv_heads * case.width}]"
    attributes = f"heads = {case.heads}, kv_heads = {case.kv_heads}, scale = {case.width ** -0.5!r}"
    if case.window:
        attributes += f", window = {case.window}"
    return "\n".join([
        f"// Made by make.py: causal attention of {case.texts} texts of {case.length} tokens.",
        f"module @{case.name.replace('.', '_')} {{",
        f"  entry @f(%q: {q}, %keys: {cache}, %values: {cache}) -> (%y) {{",
        f"    %last = iota {{axis = 0}} : i32[{tokens}]",
        f"    %text = iota {{axis = 0}} : i32[{case.texts}, {case.length}]",
        f"    %length = constant {{value = {case.length}}} : i32[]",
        f"    %begin = mul %text, %length : i32[{case.texts}, {case.length}]",
        f"    %first = reshape %begin : i32[{tokens}]",
        f"    %y = attention %q, %keys, %values, %first, %last {{{attributes}}} : {q}", "  }", "}"]) + "\n"


def encoder_module(case: EncoderAttention) -> str:
    value = f"{case.dtype}[{case.texts}, {case.length}, {case.heads * case.width}]"
    rows = f"i32[{case.texts}, {case.length}]"
    attributes = f"heads = {case.heads}, kv_heads = {case.heads}, scale = {case.width ** -0.5!r}"
    parameter, lines = case.mask_text() if case.mask else ("", [])
    mask = ", %mask" if case.mask else ""
    seen = f"random {case.mask}" if case.mask else "its whole text"
    return "\n".join([
        f"// Made by make.py: attention of {case.texts} texts of {case.length} tokens, each of {seen}.",
        f"module @{case.name.replace('.', '_')} {{",
        f"  entry @f(%q: {value}, %keys: {value}, %values: {value}{parameter}) -> (%y) {{", *lines,
        f"    %first = constant {{value = 0}} : {rows}",
        f"    %last = constant {{value = {case.length - 1}}} : {rows}",
        f"    %y = attention %q, %keys, %values, %first, %last{mask} {{{attributes}}} : {value}", "  }", "}"]) + "\n"


def choice_module(name: str, width: int) -> str:
    temperature, top_k, top_p = CHOICES[name]
    lines = [f"// Made by make.py: the choice of a token, {name}, from {width} logits.",
             f"module @sample_{name}_{width} {{",
             literal("temperature", "f32", [temperature]),
             literal("top_k", "i32", [float(top_k)]),
             literal("top_p", "f32", [top_p]),
             f"  entry @f(%x: bf16[1, {width}], %seed: i32[1], %step: i32[1]) -> (%y) {{",
             "    %y = sample %x, %temperature, %top_k, %top_p, %seed, %step : i32[1]", "  }", "}"]
    return "\n".join(lines) + "\n"


def sum_module(name: str, dims: list[int], axis: int, dtype: str) -> str:
    value = f"{dtype}{dims}"
    lines = [f"// Made by make.py: running sums along axis {axis} of {value}.",
             f"module @cumulative_sum_{name}_{dtype} {{",
             f"  entry @f(%x: {value}) -> (%y) {{",
             f"    %y = cumulative_sum %x {{axis = {axis}}} : {value}", "  }", "}"]
    return "\n".join(lines) + "\n"


def scatter_module(dtype: str, updates: int, columns: int, rows: int) -> str:
    lines = [f"// Made by make.py: {updates} rows of {columns} {dtype} added to {rows} rows by number.",
             f"module @scatter_add_{rows}_{dtype} {{",
             f"  entry @f(%index: i32[{updates}], %x: {dtype}[{updates}, {columns}]) -> (%y) {{",
             f"    %y = scatter_add %index, %x {{rows = {rows}}} : {dtype}[{rows}, {columns}]", "  }", "}"]
    return "\n".join(lines) + "\n"


def main() -> None:
    for name, (dims, axis) in SUMS.items():
        path = FOLDER / f"cumulative_sum.{name}.bf16.sir"
        path.write_text(sum_module(name, dims, axis, "bf16"), encoding="utf-8")
    for name, dtype, rows, width in COLUMNS:
        path = FOLDER / f"{name}.{rows}x{width}.{dtype}.sir"
        path.write_text(module(name, width, dtype, False, rows), encoding="utf-8")
    for dtype, updates, columns, rows in SCATTERS:
        path = FOLDER / f"scatter_add.{rows}.{dtype}.sir"
        path.write_text(scatter_module(dtype, updates, columns, rows), encoding="utf-8")
    for name in CHOICES:
        for width in VOCABULARIES:
            (FOLDER / f"sample_{name}.{width}.bf16.sir").write_text(choice_module(name, width), encoding="utf-8")
    for case in ATTENTIONS:
        (FOLDER / f"{case.name}.sir").write_text(attention_module(case), encoding="utf-8")
    for case in CAUSAL_ATTENTIONS:
        (FOLDER / f"{case.name}.sir").write_text(causal_module(case), encoding="utf-8")
    for case in ENCODER_ATTENTIONS:
        (FOLDER / f"{case.name}.sir").write_text(encoder_module(case), encoding="utf-8")
    for folder, cases, are_inputs in ((FOLDER, SPEED, False), (FOLDER / "numerics", NUMERICS, True)):
        folder.mkdir(exist_ok=True)
        for name, dtype, widths in cases:
            for width in widths:
                path = folder / f"{name}.{width}.{dtype}.sir"
                path.write_text(module(name, width, dtype, are_inputs), encoding="utf-8")


if __name__ == "__main__":
    main()
