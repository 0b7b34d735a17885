"""Language models: texts, streams, stops, chats."""

import json
import os
import shutil
import subprocess
import sys
import threading

import pytest
from conftest import ROOT, SAMPLES

import sinter
from sinter import _library

PROMPT = "Long ago, Mira the baker"
STORY = " walked from the mountain to the school. Her cat came along."


@pytest.fixture(scope="module")
def model():
    with sinter.LanguageModel(SAMPLES / "tiny-llama", "cpu") as model:
        yield model


def threads():
    return [one for one in threading.enumerate() if one.name == "sinter generate"]


def test_texts_are_encoded_and_decoded(model):
    ids = model.encode(PROMPT)
    assert ids[0] == 0 and model.decode(ids) == PROMPT
    assert model.encode("") == [0]


def test_a_zero_character_ends_no_text(tmp_path):
    """The token " walked" and the one of the byte 0 change places."""
    for name in ("config.json", "model.safetensors"):
        (tmp_path / name).symlink_to(SAMPLES / "tiny-llama" / name)
    tokenizer = json.loads((SAMPLES / "tiny-llama" / "tokenizer.json").read_text())
    vocabulary = tokenizer["model"]["vocab"]
    walked, nul = "\u0120walked", "\u0100"
    vocabulary[walked], vocabulary[nul] = vocabulary[nul], vocabulary[walked]
    (tmp_path / "tokenizer.json").write_text(json.dumps(tokenizer))
    with sinter.LanguageModel(tmp_path, "cpu") as model:
        assert model.decode([*model.encode("The"), vocabulary[nul], *model.encode("The")[1:]]) == "The\0The"
        generation = model.generate(PROMPT, count=3)
        assert list(generation) == ["\0", " from", " the"] and generation.text == "\0 from the"


def test_end_tokens_end_a_sequence_with_stop_at_end_or_without(model):
    generation = model.generate(PROMPT, count=6)
    tokens = generation.text and generation.tokens
    for stop_at_end in (True, False):
        ended = model.generate(PROMPT, count=6, end_tokens=[tokens[3]], stop_at_end=stop_at_end)
        assert ended.text and ended.tokens == tokens[:3]


def test_a_prompt_is_continued_piece_by_piece(model):
    generation = model.generate(PROMPT, count=30)
    pieces = list(generation)
    assert len(pieces) > 10
    assert "".join(pieces).startswith(STORY)
    assert generation.text == "".join(pieces)
    assert model.decode(model.encode(PROMPT) + generation.tokens).startswith(PROMPT + STORY)
    assert model.generate(model.encode(PROMPT), count=30).text == generation.text
    assert not threads()


def test_several_prompts_are_continued_at_once(model):
    prompts = [PROMPT, "One morning, Felix and Ida went to the market."]
    generation = model.generate(prompts, count=20)
    by_prompt = ["", ""]
    for sequence, piece in generation:
        by_prompt[sequence] += piece
    assert by_prompt == generation.texts
    assert by_prompt == [model.generate(prompt, count=20).text for prompt in prompts]
    assert [len(tokens) for tokens in generation.token_lists] == [20, 20]


def test_sequences_of_a_batch_come_and_go():
    texts = [PROMPT, "The", "In the morning", PROMPT, "A"]
    with sinter.LanguageModel(SAMPLES / "tiny-llama", "cpu", sequences=10) as model:
        with model.batch(places=3, capacity=64) as batch:
            assert batch.free_places == 3
            waiting, open_, given = list(enumerate(texts)), {}, {}
            while waiting or open_:
                while waiting and batch.free_places:
                    index, text = waiting.pop(0)
                    sequence = batch.add(text, temperature=1.0, seed=index % 3)
                    open_[sequence], given[index] = index, []
                for sequence, token in batch.step().items():
                    given[open_[sequence]].append(token)
                    if len(given[open_[sequence]]) == 5 + open_[sequence]:
                        batch.remove(sequence)
                        del open_[sequence]
            for index, text in enumerate(texts):
                alone = model.generate(text, count=5 + index, temperature=1.0, seed=index % 3,
                                       stop_at_end=False)
                assert alone.text and given[index] == alone.tokens, index
            for sequence in range(3):
                batch.add([5])
            with pytest.raises(sinter.SinterError, match="all 3 places are taken"):
                batch.add([5])
            with pytest.raises(sinter.SinterError, match="no sequence 99"):
                batch.remove(99)
        with pytest.raises(sinter.SinterError, match="11 places, 1 to 10"):
            model.batch(places=11, capacity=64)
        assert len(model.generate(["The"] * 10, count=2).texts) == 10


def test_draws_depend_on_the_seed(model):
    def draw(seed):
        return model.generate(PROMPT, count=20, temperature=1.2, top_k=50, seed=seed).text

    assert draw(1) == draw(1) and len({draw(seed) for seed in range(4)}) > 1


def test_an_option_of_draws_without_a_temperature_draws_at_temperature_1(model):
    def text(**options):
        return model.generate(PROMPT, count=20, **options).text

    assert text(seed=4) == text(seed=4, temperature=1) != text()
    assert text(top_p=1.0) == text(temperature=1)
    assert text(top_k=50, temperature=0) == text()
    batch = model.batch(places=2, capacity=64)
    batch.add(PROMPT, seed=4)
    batch.add(PROMPT, temperature=1, seed=4)
    steps = [list(batch.step().values()) for _ in range(12)]
    assert all(first == second for first, second in steps)
    alone = model.generate(PROMPT, count=12, seed=4)
    assert alone.text and alone.tokens == [first for first, _ in steps]


def test_weights_that_are_not_finite_are_named(folder):
    weights = folder / "model.safetensors"
    data = bytearray(weights.read_bytes())
    length = int.from_bytes(data[:8], "little")
    begin = json.loads(data[8 : 8 + length])["model.norm.weight"]["data_offsets"][0]
    data[8 + length + begin : 8 + length + begin + 2] = b"\xff\xff"
    weights.write_bytes(data)
    said = r"not finite: element \[0\] of tensor model.norm.weight is nan"
    with sinter.LanguageModel(folder, "cpu") as model:
        with pytest.raises(sinter.SinterError, match=said) as raised:
            model.generate(PROMPT).text
        assert raised.value.code == sinter.Code.CHECK_FAILED
        with pytest.raises(sinter.SinterError, match=said):
            model.batch(places=1, capacity=64).add(PROMPT, temperature=1)


@pytest.mark.parametrize(
    ("stop", "text"),
    [
        ("school", " walked from the mountain to the "),
        (["the school", "mountain"], " walked from the "),
        (" to the mountain", STORY),
        ("ool. Her c", " walked from the mountain to the sch"),
    ],
)
def test_a_stop_text_ends_the_text_before_it(model, stop, text):
    generation = model.generate(PROMPT, count=16, stop=stop)
    assert "".join(generation) == generation.text
    assert generation.text == text or generation.text.startswith(text) and text == STORY
    assert not threads()


def test_a_stop_text_ends_one_sequence_and_not_the_others(model):
    prompts = [PROMPT, "One morning, Felix and Ida went to the market."]
    texts = model.generate(prompts, count=20, stop="school").texts
    assert texts[0] == " walked from the mountain to the "
    assert texts[1] == model.generate(prompts[1], count=20).text


def test_leaving_the_loop_ends_the_generation(model):
    for piece in model.generate(PROMPT, count=400):
        assert piece == " walked"
        break
    assert not threads()
    generation = model.generate(PROMPT, count=400)
    for piece in generation:
        break
    assert not threads() and len(generation.tokens) == 1
    with pytest.raises(sinter.SinterError, match="this generation has run"):
        iter(generation)


def test_an_exception_in_the_loop_ends_the_generation(model):
    with pytest.raises(ZeroDivisionError):
        for _ in model.generate(PROMPT, count=400):
            1 / 0
    assert not threads()


def test_nothing_runs_before_it_is_asked_for(model):
    generation = model.generate(PROMPT)
    assert not threads() and generation.tokens == []


def test_closing_a_model_ends_what_it_writes():
    model = sinter.LanguageModel(SAMPLES / "tiny-llama", "cpu")
    pieces = iter(model.generate(PROMPT, count=400))
    next(pieces)
    model.close()
    assert not threads()
    with pytest.raises(sinter.SinterError, match="this LanguageModel is closed"):
        model.encode("x")


def test_what_cannot_be_generated_is_an_error(model):
    with pytest.raises(sinter.SinterError, match="count"):
        model.generate(PROMPT, count=0).text
    with pytest.raises(sinter.SinterError, match="temperature"):
        model.generate(PROMPT, temperature=-1).text
    with pytest.raises(sinter.SinterError, match="tokens|positions|context"):
        model.generate(PROMPT, count=100000).text
    with pytest.raises(sinter.SinterError, match='an empty text is given for "stop"'):
        model.generate(PROMPT, stop="")
    with pytest.raises(sinter.SinterError, match="there is no prompt"):
        model.generate([]).text
    with pytest.raises(sinter.SinterError):
        sinter.LanguageModel(SAMPLES / "no-such-model", "cpu")


TEMPLATE = (
    "{{ bos_token }}{% for message in messages %}"
    "{% if message.role not in ['user', 'assistant'] %}"
    "{{ raise_exception('no role ' + message.role) }}{% endif %}"
    "{{ message.content | trim }}\n{% endfor %}{% if add_generation_prompt %}Long ago,{% endif %}"
)


@pytest.fixture
def folder(tmp_path):
    shutil.copytree(SAMPLES / "tiny-llama", tmp_path / "model")
    config = {"bos_token": {"content": "<s>"}, "eos_token": "</s>", "chat_template": TEMPLATE}
    (tmp_path / "model" / "tokenizer_config.json").write_text(json.dumps(config))
    return tmp_path / "model"


def test_a_chat_is_the_models_own_template(folder):
    with sinter.LanguageModel(folder, "cpu") as model:
        messages = [{"role": "user", "content": " Tell a story. "}]
        answer = model.chat(messages, count=20)
        text = "Tell a story.\nLong ago,"
        assert answer._prompts == [model.encode(text)]  # one <s>, though the template has one too
        assert answer.text == model.generate(text, count=20).text
        assert answer._options["end"] == [1]
        with pytest.raises(sinter.SinterError, match="refuses the messages: no role robot"):
            model.chat([{"role": "robot", "content": ""}])
        with pytest.raises(sinter.SinterError, match="there is no message"):
            model.chat([])


def test_the_program_chats_by_the_models_own_template(folder):
    if _library.find("sinter", "bin") is None:
        pytest.skip("the program is not built")

    def chat(*more):
        command = [sys.executable, "-m", "sinter", "generate", str(folder), "--chat", "-n", "20"]
        paths = {"PYTHONPATH": str(ROOT / "python")}
        return subprocess.run(
            [*command, "--device", "cpu", *more],
            env={**os.environ, **paths},
            input=" Tell a story. \n",
            capture_output=True,
            text=True,
        )

    with sinter.LanguageModel(folder, "cpu") as model:
        answer = model.chat([{"role": "user", "content": " Tell a story. "}], count=20).text
    given = chat("--prompt", " Tell a story. ")
    assert (given.returncode, given.stdout) == (0, answer + "\n"), given.stderr
    assert chat("--prompt", "-").stdout == given.stdout
    refused = chat("--prompt", "x", "--system", "y")
    assert refused.returncode == sinter.Code.BAD_INPUT
    assert "refuses the messages: no role system" in refused.stderr


def test_a_template_in_a_file_comes_first_and_runs_in_a_sandbox(folder):
    (folder / "chat_template.jinja").write_text("{{ messages.__class__.__mro__ }}")
    with sinter.LanguageModel(folder, "cpu") as model:
        with pytest.raises(sinter.SinterError, match="refuses the messages.*unsafe"):
            model.chat([{"role": "user", "content": "x"}])
    (folder / "chat_template.jinja").write_text("{% for x in %}")
    with sinter.LanguageModel(folder, "cpu") as model:
        with pytest.raises(sinter.SinterError, match="the chat template is not valid"):
            model.chat([{"role": "user", "content": "x"}])


def test_a_model_without_a_template_says_so(model):
    with pytest.raises(sinter.SinterError, match="the model has no chat template"):
        model.chat([{"role": "user", "content": "x"}])


def test_without_jinja2_the_error_says_how_to_get_it(folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "jinja2.sandbox", None)
    with sinter.LanguageModel(folder, "cpu") as model:
        with pytest.raises(
            sinter.SinterError, match=r"jinja2 is not installed; pip install 'jinja2>=3\.1'"
        ):
            model.chat([{"role": "user", "content": "x"}])
