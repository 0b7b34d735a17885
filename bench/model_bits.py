"""Whole models on a GPU: the logits of the fused plan against the unfused plan's, bit for bit.

    python3 bench/model_bits.py [--model llama-2-7b] [--steps 256] [--json model_bits.json]

Each model of peers/architectures.py, with random weights, reads a prompt of PROMPT random tokens and
goes on greedily for `--steps` tokens. After the prompt and after every token the SHA-256 of both
plans' logits is taken; the first 16 digits of each go to the file. The exit code is 1 if a pair
differs. Needs the package `sinter` and torch.
"""

import argparse
import hashlib
import pathlib
import sys

import sinter
import torch

sys.path.insert(0, str(pathlib.Path(__file__).parent / "peers"))
import architectures, gpu, report  # of bench/peers

MODELS = {name: next(ours for ours, theirs in architectures.DTYPES.items() if theirs == dtype)
          for name, dtype in architectures.MODELS.items()}
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
    fused = sinter.compile(architectures.SAMPLES / f"{name}.json", dtype=MODELS[name],
                           random_weights=1, device_inputs=True)
    rows = -(-(PROMPT + steps) // CACHE_STEP) * CACHE_STEP
    sessions = {"fused": fused.session("cuda", symbols={"R": rows}),
                "unfused": fused.unfused().session("cuda", symbols={"R": rows})}
    vocabulary = architectures.read_spec(name)["vocabulary"]
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
    gpu.require_cuda()
    results, differ = {}, 0
    for name in arguments.model or MODELS:
        hashes = hashes_of(name, arguments.steps)
        wrong = [i for i, pair in enumerate(zip(hashes["fused"], hashes["unfused"])) if pair[0] != pair[1]]
        differ += len(wrong)
        results[name] = {"dtype": MODELS[name], "prompt": PROMPT, "steps": arguments.steps,
                         "differing": wrong, "different": len(set(hashes["fused"])), "hashes": hashes["fused"]}
        print(f"{name}: {arguments.steps + 1 - len(wrong)} of {arguments.steps + 1} hashes equal, "
              f"{len(set(hashes['fused']))} different ones", flush=True)
        gpu.free_memory()
    if arguments.json:
        report.write_json(arguments.json, {"machine": gpu.machine(), "models": results})
    sys.exit(differ != 0)


if __name__ == "__main__":
    main()
