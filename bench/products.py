#!/usr/bin/env python3
"""Products of many tokens with an epilogue: by Sinter's own kernel, which the epilogue joins, and by the
library's, behind which it is a kernel of its own.

    bench/products.py PROGRAM [--json FILE] [--only TEXT]

The shapes come from BERT-base with 4,096 tokens, a DiT with 2,048, ModernBERT with 8,192, ViT-B
with 12,608, Llama-2-7B with 2,048 and GPT-2's training step with 32,768 and 16,384; its epilogues
are GELU that also keeps its operand, and the gradient of GELU with its sum for a bias. The
library's products are tuned. A line for each: the time of a call of both, their ratio, and the rate
of the own kernel, operations of the product alone; several turns, their median.

Exits 1 if a run fails, 2 on bad arguments.
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

TURNS = 2
PRODUCTS = (  # model, tokens, columns of the result, elements of a row, epilogue
    ("BERT", 4096, 2304, 768, "bias"),
    ("BERT", 4096, 768, 768, "residual"),
    ("BERT", 4096, 3072, 768, "gelu"),
    ("BERT", 4096, 768, 3072, "residual"),
    ("DiT", 2048, 3456, 1152, "bias"),
    ("DiT", 2048, 1152, 1152, "residual"),
    ("DiT", 2048, 4608, 1152, "gelu_tanh"),
    ("DiT", 2048, 1152, 4608, "residual"),
    ("ModernBERT", 8192, 2304, 768, "none"),
    ("ModernBERT", 8192, 768, 768, "residual"),
    ("ModernBERT", 8192, 768, 1152, "residual"),
    ("ViT", 12608, 3072, 768, "gelu"),
    ("ViT", 12608, 768, 3072, "residual"),
    ("ViT", 12608, 768, 768, "residual"),
    ("GPT-2", 32768, 3072, 768, "gelu_tanh kept"),
    ("GPT-2", 32768, 3072, 768, "gradient"),
    ("GPT-2", 16384, 3072, 768, "gelu_tanh kept"),
    ("GPT-2", 16384, 3072, 768, "gradient"),
    ("Llama", 2048, 12288, 4096, "none"),
    ("Llama", 2048, 4096, 4096, "residual"),
    ("Llama", 2048, 4096, 11008, "residual"),
)


GRADIENT = """%p = einsum %x, %w {spec = "nk,km->nm"}
%wide = cast %p {dtype = f32}
%h = cast %r {dtype = f32}
%square = mul %h, %h
%three = constant {value = 0x1.2444f2a4d8b4bp-4} : f32[]
%cubic = mul %three, %square
%two = constant {value = 0x1.9884533d43651p+0} : f32[]
%sum = add %two, %cubic
%inner = mul %h, %sum
%s = sigmoid %inner
%six = constant {value = 0x1.b6676bf7450fp-3} : f32[]
%more = mul %six, %square
%slope = add %two, %more
%outer = mul %h, %slope
%one = constant {value = 1} : f32[]
%rest = sub %one, %s
%curve = mul %s, %rest
%bent = mul %outer, %curve
%factor = add %s, %bent
%product = mul %wide, %factor
%y = cast %product {dtype = bf16}
%z = reduce_sum %y {axes = [0]}"""


def gradient_module(tokens, columns, length):
    body = "".join(f"    {line}\n" for line in GRADIENT.splitlines())
    return (f'module @product {{\n  weight %w : bf16[{length}, {columns}] = file {{tensor = "w"}}\n'
            f"  entry @main(%x: bf16[{tokens}, {length}], %r: bf16[{tokens}, {columns}]) -> (%y, %z) {{\n{body}  }}\n}}\n")


def module(tokens, columns, length, epilogue):
    if epilogue == "gradient":
        return gradient_module(tokens, columns, length)
    results = "%p, %y" if epilogue.endswith(" kept") else "%y"
    epilogue = epilogue.removesuffix(" kept")
    bias = epilogue in ("bias", "gelu", "gelu_tanh")
    weights = {"w": f"[{columns}, {length}]", **({"b": f"[{columns}]"} if bias else {})}
    declared = "".join(f'  weight %{name} : bf16{dims} = file {{tensor = "{name}"}}\n' for name, dims in weights.items())
    product = "%p = linear %x, %w" + (", %b" if bias else "")
    after = {"residual": "%y = add %p, %r", "gelu": "%y = gelu %p", "gelu_tanh": "%y = gelu_tanh %p"}
    residual = f", %r: bf16[N, {columns}]" if epilogue == "residual" else ""
    lines = [product, after[epilogue]] if epilogue in after else [product.replace("%p", "%y", 1)]
    body = "".join(f"    {line}\n" for line in lines)
    return (f"module @product {{\n  symbol N in [{tokens}, {tokens}]\n{declared}"
            f"  entry @main(%x: bf16[N, {length}]{residual}) -> ({results}) {{\n{body}  }}\n}}\n")


def seconds(program, path, *options):
    command = [program, "bench", path, "--random-weights", "1", "--repeat", "5", "--json", "-q", *options]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: exit code {done.returncode}: {done.stderr.strip()}")
    result = json.loads(done.stdout)
    return result["cases"][0]["fused"]["median_s"], result.get("device")


def measure(program, folder, only):
    for model, tokens, columns, length, epilogue in PRODUCTS:
        name = f"{model} {tokens}x{columns}x{length} {epilogue}"
        if only not in name:
            continue
        path = pathlib.Path(folder) / "product.sir"
        path.write_text(module(tokens, columns, length, epilogue))
        times = {"own": [], "library": []}
        for _ in range(TURNS):
            for products, options in (("own", ()), ("library", ("--tune",))):
                one, device = seconds(program, str(path), "--products", products, *options)
                times[products].append(one)
        own, library = (statistics.median(times[products]) for products in ("own", "library"))
        yield {"product": name, "own_s": own, "library_s": library, "ratio": own / library,
               "own_flops_per_s": 2 * tokens * columns * length / own, "device": device}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--only", metavar="TEXT", default="", help="products whose name has the text")
    arguments = parser.parse_args()
    results = []
    with tempfile.TemporaryDirectory() as folder:
        try:
            for one in measure(arguments.program, folder, arguments.only):
                print(f"{one['product']:40} own {1e6 * one['own_s']:8.2f} µs  library {1e6 * one['library_s']:8.2f} µs"
                      f"  {one['ratio']:.3f}  {one['own_flops_per_s'] / 1e12:4.0f} TFLOP/s", flush=True)
                results.append(one)
        except RuntimeError as error:
            sys.exit(f"products: {error}")
        finally:
            if arguments.json:
                pathlib.Path(arguments.json).write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
