"""The kinds of histories (histories.py): what threads do with a shared object, and what each call may
give. A kind is a function of a `History`, which plays the acts, and of a source of random numbers."""

from __future__ import annotations

import gc
import random
import shutil
import tempfile
import threading
from collections import Counter
from typing import TYPE_CHECKING

import numpy as np
from conftest import ADD, BLOCK, ROOT, SAMPLES

import sinter

if TYPE_CHECKING:
    from histories import History


def language_model():
    return sinter.LanguageModel(SAMPLES / "tiny-llama", "cpu")


PROMPTS = [[5, 9], [7], [11, 3, 8, 200], [1000, 2]]


def tokens_alone(model, count: int) -> list[list[int]]:
    generations = [model.generate(one, count=count, stop_at_end=False) for one in PROMPTS]
    return [one.text is not None and one.tokens for one in generations]


def batch(history: History, draw: random.Random) -> None:
    """The tokens of a sequence, whichever threads got them, are the first of its prompt's, each
    once, and each thread has its own in order."""
    model = language_model()
    alone = tokens_alone(model, 20)
    one = model.batch(places=3, capacity=32)
    prompt_of, given = {}, []

    def add(draw):
        number = draw.randrange(len(PROMPTS))
        told = history.progress(draw, [step, remove, places, close, add, generate, close_model])
        prompt_of[one.add(PROMPTS[number], progress=told)] = number

    def step(draw):
        given.append((threading.get_ident(), one.step()))

    def remove(draw):
        one.remove(draw.randrange(8))

    def places(draw):
        if not 0 <= one.free_places <= 3:
            history.wrong.append(f"{one.free_places} free places")

    def close(draw):
        one.close()

    def close_model(draw):
        model.close()

    def generate(draw):
        tokens_of(history, model, draw, alone)

    acts = [add, add, step, step, step, step, step, remove, places, generate]
    history.run(acts, [close, close_model], threads=draw.choice([2, 3, 4]), steps=8)
    for sequence, number in prompt_of.items():
        got = [(thread, each[sequence]) for thread, each in given if sequence in each]
        wanted = alone[number][: len(got)]
        history.expect(f"sequence {sequence}", Counter(t for _, t in got), Counter(wanted))
        for thread in {thread for thread, _ in got}:
            rest = iter(wanted)
            mine = [token for by, token in got if by == thread]
            history.expect("its order", all(token in rest for token in mine), True)


def tokens_of(history, model, draw, alone) -> None:
    number, count = draw.randrange(len(PROMPTS)), draw.randrange(1, 9)
    generation = model.generate(PROMPTS[number], count=count, stop_at_end=False)
    if draw.random() < 0.3:
        for _ in generation:
            break
        history.expect("tokens", generation.tokens, alone[number][: len(generation.tokens)])
    else:
        generation.text
        history.expect("tokens", generation.tokens, alone[number][:count])


def generations(history: History, draw: random.Random) -> None:
    """Threads that share generations and iterators of them."""
    model = language_model()
    alone = tokens_alone(model, 8)
    texts = [model.generate(one, count=8, stop_at_end=False).text for one in PROMPTS]
    shared = [model.generate(PROMPTS[i % 4], count=8, stop_at_end=False) for i in range(8)]
    iterators = [iter(one) for one in shared[:4]]

    def generate(draw):
        tokens_of(history, model, draw, alone)

    def text(draw):
        i = draw.randrange(4, 8)
        history.expect("text", shared[i].text, texts[i % 4])

    def piece(draw):
        next(draw.choice(iterators), None)

    def end(draw):
        draw.choice(iterators).close()

    def leave(draw):
        pieces = iter(model.generate(PROMPTS[0], count=8))
        next(pieces, None)
        cycle = [pieces]
        cycle.append(cycle)  # for the garbage collector

    def collect(draw):
        gc.collect()

    def encode(draw):
        history.expect("text", model.decode(model.encode("Long ago")), "Long ago")

    def close(draw):
        model.close()

    acts = [generate, generate, text, piece, piece, end, leave, collect, encode]
    history.run(acts, [close], threads=draw.choice([2, 3, 4]), steps=8)
    for i in range(4):
        history.expect("iterator", shared[i].tokens, alone[i][: len(shared[i].tokens)])


def compiled(history: History, draw: random.Random) -> None:
    weights = {"table": np.ones((10, 8), np.float32), "w": np.arange(8, dtype=np.float32)}
    one = sinter.compile(BLOCK, weights=weights)
    inputs = {"ids": np.array([1, 4], np.int32), "r": np.ones((2, 8), np.float32)}
    alone = one.run(**inputs)["y"].tolist()
    wanted = {name: ask(one) for name, ask in QUESTIONS.items()}

    def question(draw):
        name = draw.choice(list(QUESTIONS))
        history.expect(name, QUESTIONS[name](one), wanted[name])

    def run(draw):
        history.expect("run", one.run(**inputs)["y"].tolist(), alone)

    def load(draw):
        one.load("cpu", history.progress(draw, [run, close, question, load]))

    def session(draw):
        with one.session("cpu") as session:
            history.expect("run", session.run(**inputs)["y"].tolist(), alone)

    def verify(draw):
        history.expect("verify", bool(one.verify("cpu")), True)

    def close(draw):
        one.close()

    acts = [question, question, question, run, load, session, verify]
    if draw.random() < 0.5:  # else it is loaded
        one.close()
        one = sinter.compile(BLOCK, weights=weights)
    history.run(acts, [close], threads=draw.choice([2, 3, 4]), steps=12)


QUESTIONS = {
    "why": lambda one: str(one.why("s", "y")),
    "decisions": lambda one: str(one.decisions()),
    "ledger": lambda one: one.ledger_text,
    "kernels": lambda one: str(one.kernels),
    "steps": lambda one: str(one.entry().steps),
    "costs": lambda one: str(one.entry().unfused_costs({"N": 8})),
    "name": lambda one: (one.model.name, one.model.text, one.target),
}


def session(history: History, draw: random.Random) -> None:
    owner = sinter.compile(ADD)
    shared = owner.session("cpu")
    calls = [shared.call() for _ in range(2)]

    def run(draw):
        x = np.full((draw.randrange(1, 64), 4), draw.randrange(9), np.float32)
        history.expect("run", shared.run(x=x, y=x).tolist(), (x * x + x).tolist())

    def bind(draw):
        x = np.ones((draw.randrange(1, 64), 4), np.float32)
        draw.choice(calls).bind(x=x, y=x)

    def run_call(draw):
        history.expect("call", set(np.unique(draw.choice(calls).run())), {2.0})

    def forget(draw):
        draw.choice([shared.forget, shared.clear, shared.synchronize, calls[0].forget])()

    def close(draw):
        draw.choice([owner, shared, *calls]).close()

    acts = [run, run, bind, run_call, forget]
    history.run(acts, [close], threads=draw.choice([2, 3]), steps=30)


def module(history: History, draw: random.Random) -> None:
    """Every op that was added without an error is in the text."""
    one = sinter.ModuleBuilder("shared")
    graph = one.entry("main")
    x, names = graph.input("x", "f32[8]"), []

    def op(draw):
        name = f"v{draw.randrange(10**9)}"
        graph.output(graph.op("add", [x, x], name=name))
        names.append(name)

    def text(draw):
        known, given = list(names), one.text()
        history.expect("text", [name for name in known if name not in given], [])

    def build(draw):
        model = one.model()
        if draw.random() < 0.1:
            sinter.compile(model)

    def declare(draw):
        one.symbol(f"S{draw.randrange(10**9)}", 1, 8)

    def close(draw):
        one.close()

    history.run([op, op, op, text, build, declare], [close], threads=3, steps=30)


def encoder(history: History, draw: random.Random) -> None:
    golden = ROOT / "tests" / "golden"
    with tempfile.TemporaryDirectory() as folder:
        for name in ("config.json", "model.safetensors"):
            shutil.copy(golden / "bert_post_ln" / name, folder)
        shutil.copy(golden / "tokenizers/wordpiece_bert/tokenizer.json", folder)
        one = sinter.Encoder(folder, "cpu")
    texts = ["a b", "c", "a a a"]
    alone = {text: one.encode(text).tobytes() for text in texts}

    def encode(draw):
        text = draw.choice(texts)
        history.expect(text, one.encode(text).tobytes(), alone[text])

    def width(draw):
        history.expect("width", one.width, 64)

    def close(draw):
        one.close()

    history.run([encode, encode, width], [close], threads=draw.choice([2, 3]), steps=12)


KINDS = [batch, batch, generations, compiled, session, module, encoder]
