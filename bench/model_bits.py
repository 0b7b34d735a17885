"""Whole models on a GPU: the logits of the fused plan against those of the unfused one, bit for bit.

    python3 bench/model_bits.py [--model llama-2-7b] [--steps 256] [--json model_bits.json]

Each of MODELS, a spec in samples/ with random weights, reads a prompt of PROMPT random tokens and
goes on greedily for `--steps` tokens. After the prompt and after every token the SHA-256 of both
plans' logits is taken; the first 16 digits of each go to the file. The exit code is 1 if a pair
differs. Needs the package `sinter` and torch.
"""

import argparse
import hashlib
import json
import pathlib
import sys

import sinter
import torch

SAMPLES = pathlib.Path(__file__).parent.parent / "samples"
MODELS = {"llama-2-7b": "bf16", "llama-3.2-1b": "bf16", "pythia-2.8b": "f16",
          "gpt-neox-2.8b-sequential": "f16"}
PROMPT = 300  # more than two tiles of the attention's rows, and no multiple of one
CACHE_STEP = 8


def numbers(*values: int) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.int32, device="cuda")


def run_entry(session: sinter.Session, entry: str, tokens: list[int], begin: int) -> torch.Tensor:
    """The logits of the last of `tokens`, which stand at `begin` of the session's only sequence."""
    places = range(begin, begin + len(tokens))
    inputs = {"tokens": numbers(*tokens), "pos": numbers(*places), "slot": numbers(*places),
              "first": numbers(*[0] * len(tokens))}
    symbols = {}
    if entry == "prefill":
        inputs["wanted"] = numbers(len(tokens) - 1)
        symbols["K"] = -(-(begin + len(tokens)) // CACHE_STEP) * CACHE_STEP
    return session.run(entry, inputs, symbols=symbols)


def digits(logits: torch.Tensor) -> str:
    return hashlib.sha256(logits.view(torch.uint8).cpu().numpy().tobytes()).hexdigest()[:16]


def hashes_of(name: str, steps: int) -> dict[str, list[str]]:
    """By plan, the hashes after the prompt and after every token."""
    fused = sinter.compile(str(SAMPLES / f"{name}.json"), dtype=MODELS[name], random_weights=1,
                           device_inputs=True)
    rows = -(-(PROMPT + steps) // CACHE_STEP) * CACHE_STEP
    sessions = {"fused": fused.session("cuda", symbols={"R": rows}),
                "unfused": fused.unfused().session("cuda", symbols={"R": rows})}
    vocabulary = json.loads((SAMPLES / f"{name}.json").read_text())["vocabulary"]
    torch.manual_seed(0)
    tokens, entry, begin = torch.randint(vocabulary, (PROMPT,)).tolist(), "prefill", 0
    hashes = {plan: [] for plan in sessions}
    for _ in range(steps + 1):
        logits = {plan: run_entry(session, entry, tokens, begin)
                  for plan, session in sessions.items()}
        for plan, result in logits.items():
            hashes[plan].append(digits(result))
        begin += len(tokens)
        tokens, entry = [int(logits["fused"][-1].float().argmax())], "decode"
    for session in sessions.values():
        session.close()
    fused.close()
    return hashes


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", action="append", choices=MODELS, help="repeatable; all")
    parser.add_argument("--steps", type=int, default=256)
    parser.add_argument("--json", type=pathlib.Path)
    arguments = parser.parse_args()
    results, differ = {}, 0
    for name in arguments.model or MODELS:
        hashes = hashes_of(name, arguments.steps)
        wrong = [i for i, pair in enumerate(zip(hashes["fused"], hashes["unfused"])) if pair[0] != pair[1]]
        differ += len(wrong)
        results[name] = {"dtype": MODELS[name], "prompt": PROMPT, "steps": arguments.steps,
                         "differing": wrong, "different": len(set(hashes["fused"])), "hashes": hashes["fused"]}
        print(f"{name}: {arguments.steps + 1 - len(wrong)} of {arguments.steps + 1} hashes equal, "
              f"{len(set(hashes['fused']))} different ones", flush=True)
        torch.cuda.empty_cache()
    if arguments.json:
        machine = {"device": torch.cuda.get_device_name(), "torch": torch.__version__, "cuda": torch.version.cuda}
        arguments.json.write_text(json.dumps({"machine": machine, "models": results}, indent=1) + "\n")
    sys.exit(differ != 0)


if __name__ == "__main__":
    main()
