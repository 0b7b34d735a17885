#!/usr/bin/env python3
"""Models with weights of 8 and 4 bits: a token, several sequences, a prefill.

    bench/quantized.py PROGRAM --json FILE [--only NAME ...] [--seconds 400]

Shapes of Llama-2-7B, Llama-3.2-1B and Llama-3-70B in bf16 with compressed-tensors weights, made from a
seed; the output projection stays in 16 bits. 1,024 tokens in the caches. `floor`: the bytes of weights,
scales and caches at the read ceiling of that run. Each row is compared with its floor or with another row
of the same run, and has the ratio to reach. FILE keeps the rows of earlier runs; none begins after
--seconds.

Exits 1 if a run fails, 2 on bad arguments.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile
import time

LLAMA = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_act": "silu", "rms_norm_eps": 1e-5,
         "torch_dtype": "bfloat16", "bos_token_id": 1, "eos_token_id": 2, "rope_theta": 10000.0}
SHAPES = {
    "7b": {"vocab_size": 32000, "hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32,
           "num_key_value_heads": 32, "intermediate_size": 11008, "max_position_embeddings": 36864,
           "tie_word_embeddings": False},
    "1b": {"vocab_size": 128256, "hidden_size": 2048, "num_hidden_layers": 16, "num_attention_heads": 32,
           "num_key_value_heads": 8, "intermediate_size": 8192, "max_position_embeddings": 8192,
           "tie_word_embeddings": True},
    "70b": {"vocab_size": 128256, "hidden_size": 8192, "num_hidden_layers": 80, "num_attention_heads": 64,
            "num_key_value_heads": 8, "intermediate_size": 28672, "max_position_embeddings": 8192,
            "tie_word_embeddings": False},
}


def weights(bits, kind, strategy, **more):
    return {"num_bits": bits, "type": kind, "strategy": strategy, "symmetric": True, "dynamic": False} | more


FORMATS = {
    "fp8": ("float-quantized", weights(8, "float", "channel")),
    "int8": ("int-quantized", weights(8, "int", "channel")),
    "int4": ("pack-quantized", weights(4, "int", "group", group_size=128)),
    "int4-zeros": ("pack-quantized", weights(4, "int", "group", group_size=128, symmetric=False)),
}
TOKEN = ["-p", "0", "-n", "32", "-d", "1024"]
PREFILL = ["-p", "2048", "-n", "0"]
# Row: shape, format ("": bf16), options, what its time is compared with ("": its floor), the ratio to reach.
ROWS = {
    "7b fp8": ("7b", "fp8", TOKEN, "", 1.12),
    "7b int8": ("7b", "int8", TOKEN, "", 1.12),
    "7b int4": ("7b", "int4", TOKEN, "", 1.22),
    "7b int4 zeros": ("7b", "int4-zeros", TOKEN, "", 1.22),
    "7b int4, 8 sequences": ("7b", "int4", [*TOKEN, "--batch", "8"], "7b int4", 1.15),
    "7b int4, 32 sequences": ("7b", "int4", [*TOKEN, "--batch", "32"], "7b int4", 1.5),
    "1b bf16": ("1b", "", TOKEN, "", None),
    "1b fp8": ("1b", "fp8", TOKEN, "1b bf16", 0.72),
    "1b int4": ("1b", "int4", TOKEN, "1b bf16", 0.60),
    "7b bf16, prefill": ("7b", "", PREFILL, "", None),
    "7b int4, prefill": ("7b", "int4", PREFILL, "7b bf16, prefill", 1.25),
    "7b fp8, prefill": ("7b", "fp8", PREFILL, "7b bf16, prefill", 1.25),
    "7b int4 zeros, prefill": ("7b", "int4-zeros", PREFILL, "7b bf16, prefill", 1.25),
    "7b int4, prefill, --dequantize 16": ("7b", "int4", [*PREFILL, "--dequantize", "16"], "7b bf16, prefill", 1.10),
    "70b int4": ("70b", "int4", TOKEN, "", 1.20),
}


def config(shape, layout):
    result = LLAMA | SHAPES[shape]
    if layout:
        kind, scheme = FORMATS[layout]
        group = {"targets": ["Linear"], "weights": scheme, "input_activations": None, "output_activations": None}
        result["quantization_config"] = {"quant_method": "compressed-tensors", "format": kind, "ignore": ["lm_head"],
                                         "quantization_status": "compressed", "config_groups": {"group_0": group}}
    return result


def measured(program, shape, layout, options):
    with tempfile.TemporaryDirectory() as folder:
        pathlib.Path(folder, "config.json").write_text(json.dumps(config(shape, layout)))
        command = [program, "bench", folder, "--random-weights", "1", "--repeat", "4", "--json", "-q", *options]
        begin = time.monotonic()
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        whole = time.monotonic() - begin
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: exit code {done.returncode}: {done.stderr.strip()[-500:]}")
    result = json.loads(done.stdout)
    (case,) = result["cases"]
    row = {"seconds": case["fused"]["median_s"], "unfused": case["unfused"]["median_s"], "bytes": case["amount"],
           "ceiling": case["ceiling"], "device": result["machine"]["device"], "process_s": whole}
    if options[:2] == TOKEN[:2]:
        row["floor_s"] = case["amount"] / case["ceiling"]["per_s"]
    return row


def shown(name, row, rows):
    _, _, _, other, reach = ROWS[name]
    text = f"{name:34} {1e3 * row['seconds']:8.3f} ms"
    base = rows.get(other, {}).get("seconds") if other else row.get("floor_s")
    if base:
        text += f"  {row['seconds'] / base:6.3f} x {other or 'the floor'}"
        text += f", to reach {reach}" if reach else ""
    return text + f"  ({row['device']})"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--json", type=pathlib.Path, required=True)
    parser.add_argument("--only", action="append", choices=list(ROWS))
    parser.add_argument("--seconds", type=float, default=400)
    given = parser.parse_args()
    end = time.monotonic() + given.seconds
    rows = json.loads(given.json.read_text())["rows"] if given.json.exists() else {}
    failed = False
    for name in given.only or ROWS:
        if time.monotonic() > end:
            print(f"{name}: no time left")
            continue
        shape, layout, options, _, _ = ROWS[name]
        try:
            rows[name] = measured(given.program, shape, layout, options)
        except (RuntimeError, OSError, ValueError, KeyError) as error:
            failed = True
            print(f"{name}: {error}", flush=True)
            continue
        given.json.write_text(json.dumps({"rows": rows}, indent=1) + "\n")
        print(shown(name, rows[name], rows), flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
