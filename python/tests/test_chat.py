"""Chat templates: untrusted templates end within bounds, others render as jinja2 renders them."""

import json
import shutil
import subprocess
import threading
import time

import pytest
from conftest import SAMPLES
from jinja2.sandbox import ImmutableSandboxedEnvironment

import sinter
from sinter import _library
from sinter.bounded_template import BoundedTemplate, Bounds
from sinter.chat import ChatTemplate

MESSAGES = [
    {"role": "system", "content": " Be kind. "},
    {"role": "user", "content": "Hi <b> & 'x'\n\nthere"},
    {
        "role": "assistant",
        "content": "a\tb é 漢",
        "tool_calls": [{"function": {"name": "f", "arguments": {"y": [1, 2.5, None], "é": "ü"}}}],
    },
    {"role": "tool", "content": [{"type": "text", "text": "result"}, {"type": "image"}]},
    {"role": "user", "content": "last"},
]
GIVEN = {
    "messages": MESSAGES,
    "tools": [{"type": "function", "function": {"name": "f", "parameters": {"x": "integer"}}}],
    "bos_token": "<s>",
    "eos_token": "</s>",
    "add_generation_prompt": True,
}

# In the manner of published templates: turns, a system text, tools, the last question, macros.
PUBLISHED = [
    "{% for m in messages %}{{'<|im_start|>' + m['role'] + '\\n' + m['content']|string "
    "+ '<|im_end|>' + '\\n'}}{% endfor %}",
    "{% if messages[0]['role'] == 'system' %}{% set turns = messages[1:] %}"
    "{% set system = messages[0]['content'] %}{% else %}{% set turns = messages %}{% endif %}"
    "{% for m in turns %}{% if loop.index0 == 0 and system is defined %}"
    "{% set text = '<<SYS>>\\n' + system | trim + '\\n<</SYS>>\\n\\n' ~ m.content %}"
    "{% else %}{% set text = m.content %}{% endif %}"
    "{% if m.role == 'user' %}{{ bos_token + '[INST] ' ~ text ~ ' [/INST]' }}"
    "{% elif m.role == 'assistant' %}{{ ' ' ~ text.strip().split('\\n')[0] ~ ' ' + eos_token }}"
    "{% endif %}{% endfor %}",
    "{%- macro show(arguments) -%}{%- for k, v in arguments|dictsort -%}{{ k }}={{ v|tojson }}"
    "{% if not loop.last %}, {% endif %}{%- endfor -%}{%- endmacro -%}\n"
    "{%- set ns = namespace(last=-1, text='') -%}\n"
    "{%- for m in messages -%}{%- if m.role == 'user' -%}{%- set ns.last = loop.index0 -%}"
    "{%- endif -%}{%- set ns.text = ns.text ~ m.role -%}{%- endfor -%}\n"
    "{%- for m in messages -%}{%- if m.content is string -%}[{{ m.role|capitalize }} "
    "{{ loop.index }}/{{ loop.length }}]{{ m.content.replace('i', 'o') }}{%- else -%}"
    "{%- for part in m.content if part.type == 'text' -%}{{ part['text']|upper }}{%- endfor -%}"
    "{%- endif -%}{%- for call in m.tool_calls -%}{{ call|tojson(indent=2) }}"
    "{{ show(call.function.arguments) }}{%- endfor -%}{%- endfor -%}{{ ns.text }} {{ ns.last }}"
    "{{ tools|map(attribute='function.name')|join(', ') }}",
    "{% for n in range(6) %}{% if n == 1 %}{% continue %}{% endif %}{% if n == 4 %}{% break %}"
    "{% endif %}{{ '%s-%03d %5s' % (n, 7, 'x') }}{{ '{:>5}'.format(n) }}{% endfor %}"
    "{{ 2 ** 10 }} {{ 'ab' * 3 }} {{ [1] + [n] }} {{ [[1], [2]]|sum(start=[]) }} {{ (1, tools) }}",
    "{% for t in [{'n': 1, 'c': [{'n': 2, 'c': []}]}] recursive %}{{ t.n }}{{ loop(t.c) }}"
    "{% endfor %}{% set a %}a\nb{% endset %}{{ a|indent(2) }}{% filter upper %}x{% endfilter %}",
    "{% autoescape true %}<i>{{ messages[1].content ~ '<' }}{{ tools }}{% endautoescape %}",
]

NESTED = "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}"
GROWING = (
    "{% set n = namespace(v=['a']) %}{% for i in range(99) %}{% set n.v = GROWN %}{% endfor %}"
)
LONG = "{% set s = 'a' * 60000 %}"
VALUE = "a value of more than 65,536 characters"
TEXT = "a text of more than 65,536 characters"
STEPS = "more than 20,000 steps"

HOSTILE = [
    (NESTED, STEPS),
    (
        "{% for a in [1, 2] recursive %}{% if loop.depth < 99 %}{{ loop([1, 2]) }}{% endif %}"
        "{% endfor %}",
        STEPS,
    ),
    (
        "{% macro m(n) %}{% if n %}{{ m(n - 1) ~ m(n - 1) }}{% endif %}{% endmacro %}{{ m(60) }}",
        STEPS,
    ),
    ("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", "nest deeper than Python's stack"),
    ("{% for a in [1] recursive %}{{ loop([1]) }}{% endfor %}", "nest deeper than Python's stack"),
    ("{{ range(9)|map(attribute='real" + ".real" * 20000 + "')|list }}", STEPS),
    ("{{ 'a' * 10**9 }}", VALUE),
    ("{{ [0] * 1000000000 }}", VALUE),
    ("{{ 10 ** (10 ** 10) }}", VALUE),
    ("{{ 1.5|round(1000000000) }}", VALUE),
    ("{{ 'a'|center(1000000000) }}", VALUE),
    ("{{ 'a'|attr('center')(1000000000) }}", VALUE),
    ("{% for i in [1] %}{{ 'a'.zfill(1000000000) }}{% endfor %}", VALUE),
    ("{{ '\\t'.expandtabs(1000000000) }}", VALUE),
    ("{{ 'a'|indent(1000000000, true) }}", VALUE),
    ("{{ [1]|batch(1000000000, 0)|list }}", VALUE),
    ("{{ [1]|tojson(indent=1000000000) }}", VALUE),
    ("{{ '%1000000000d' % 1 }}", VALUE),
    ("{{ '%*d'|format(1000000000, 1) }}", VALUE),
    ("{{ '{:1000000000}'.format(1) }}", VALUE),
    ("{{ '{:{}}'.format(1, 1000000000) }}", VALUE),
    ("{{ '{a:{b}}'.format_map({'a': 1, 'b': 1000000000}) }}", VALUE),
    (LONG + "{{ s.replace('a', s) }}", VALUE),
    (LONG + "{{ s|replace('a', s) }}", VALUE),
    (LONG + "{{ s.join(s) }}", VALUE),
    (LONG + "{{ s|join(s) }}", VALUE),
    (LONG + "{{ s.rfind('b' + s[:30000]) }}", VALUE),
    ("{{ range(99999)|map('center', 1000)|list }}", VALUE),
    (GROWING.replace("GROWN", "n.v + n.v"), VALUE),
    (GROWING.replace("GROWN", "n.v ~ n.v"), VALUE),
    (GROWING.replace("GROWN", "[n.v, n.v]"), VALUE),
    (GROWING.replace("GROWN", "dict(x=n.v, y=n.v)"), VALUE),
    (GROWING.replace("GROWN", "n.v * 2"), VALUE),
    ("{% set t %}{% for i in range(99999) %}" + "x" * 1000 + "{% endfor %}{% endset %}", TEXT),
    (LONG + "{% for i in range(2) %}{{ s }}{% endfor %}", TEXT),
    ("{{ (1).to_bytes(1000000000, 'big') }}", "the method to_bytes is not there"),
    ("{{ 'a'|urlize }}", "No filter named 'urlize'"),
    ("x" * (1 << 20) + "x", "has 1,048,577 characters"),
]


def template(tmp_path, text):
    (tmp_path / "chat_template.jinja").write_text(text)
    return ChatTemplate(str(tmp_path))


def refused(tmp_path, text, bounds=Bounds(steps=20_000, characters=1 << 16)):
    with pytest.raises(sinter.SinterError) as raised:
        chat = template(tmp_path, text)
        chat._compiled["default"]._bounds = bounds
        chat.render([{"role": "user", "content": "x"}])
    return str(raised.value)


@pytest.mark.parametrize(("text", "bound"), HOSTILE, ids=[text[:40] for text, _ in HOSTILE])
def test_a_hostile_template_ends_at_a_bound_that_the_error_names(tmp_path, text, bound):
    began = time.monotonic()
    assert bound in refused(tmp_path, text)
    assert time.monotonic() - began < 2


@pytest.mark.parametrize("text", [NESTED, "{{ ([[1]] * 100000)|sum(start=[]) }}"])
def test_the_time_of_a_template_is_bounded_in_every_thread(tmp_path, text):
    errors = []
    bounds = Bounds(steps=1 << 60, seconds=0.1)
    folders = [tmp_path / name for name in ("first", "second")]  # each writes its template
    for folder in folders:
        folder.mkdir()
    work = lambda folder: errors.append(refused(folder, text, bounds))
    threads = [threading.Thread(target=work, args=[folder]) for folder in folders]
    began = time.monotonic()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert time.monotonic() - began < 2
    assert len(errors) == 2
    assert all("takes more than 0.1 seconds" in error for error in errors)


@pytest.mark.parametrize("text", PUBLISHED)
def test_a_template_renders_as_in_jinja2(text):
    plain = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"]
    )
    plain.filters["tojson"] = lambda value, indent=None: json.dumps(
        value, ensure_ascii=False, indent=indent
    )
    assert BoundedTemplate(text, {}, "").render(GIVEN) == plain.from_string(text).render(GIVEN)


def test_the_block_generation_of_transformers_is_its_text():
    text = (
        "{% for m in messages %}{% set a = m.role %}{% if a == 'user' %}{{ a }}{% else %}\n"
        "  {% generation %}\n{% set a = '!' %}{{ a ~ loop.index }}\n{% endgeneration %}\n"
        "{{ a }};{% endif %}{% endfor %}"
    )
    given = {"messages": [{"role": role} for role in ("user", "assistant")]}
    assert BoundedTemplate(text, {}, "").render(given) == "user!2\nassistant;"


def test_bounds_grow_with_the_messages(tmp_path):
    messages = [{"role": "user", "content": "x" * 3_000_000}] * 2
    chat = template(tmp_path, "{% for m in messages %}{{ m.content ~ m.content }}{% endfor %}")
    assert chat.render(messages) == "x" * 12_000_000


def test_what_a_template_says_is_printable(tmp_path):
    said = refused(tmp_path, "{{ raise_exception('no\\n\\x1b[31mroles\\u202e' ~ '!' * 2000) }}")
    assert "refuses the messages: no \\x1b[31mroles\\xe2\\x80\\xae!!" in said
    assert len(said) < 1200
    assert said.isprintable()
    assert refused(tmp_path, "{{ {}['a\\x1b[2J\\n'].x }}").isprintable()
    assert refused(tmp_path, "{% a\x1b[2J %}").isprintable()


def test_the_template_and_the_tokens_are_those_that_transformers_takes(tmp_path):
    def rendered(**variables):
        return ChatTemplate(str(tmp_path)).render([{"role": "user", "content": "x"}], **variables)

    show = "{{ bos_token }}{{ eos_token }}{{ image_token }}"
    config = {
        "chat_template": [
            {"name": "default", "template": "d" + show},
            {"name": "tool_use", "template": "t" + show},
        ],
        "bos_token": {"__type": "AddedToken", "content": "<b>"},
        "eos_token": "<e>",
        "extra_special_tokens": {"image_token": "<i>"},
    }
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))
    assert (rendered(), rendered(tools=[])) == ("d<b><e><i>", "t<b><e><i>")
    (tmp_path / "special_tokens_map.json").write_text('{"eos_token": {"content": "<m>"}}')
    assert rendered() == "d<b><m><i>"
    config["added_tokens_decoder"] = {}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))
    assert rendered() == "d<b><e><i>"
    # Template files count before tokenizer_config.json.
    (tmp_path / "additional_chat_templates").mkdir()
    (tmp_path / "additional_chat_templates" / "rag.jinja").write_text("r")
    with pytest.raises(sinter.SinterError, match="none is the default: rag"):
        rendered()
    (tmp_path / "chat_template.jinja").write_text("f")
    assert (rendered(), rendered(tools=[])) == ("f", "f")
    (tmp_path / "additional_chat_templates" / "tool_use.jinja").write_text("g")
    assert (rendered(), rendered(tools=[])) == ("f", "g")


# As published with SmolLM2, TinyLlama, Phi-3, Llama 3, Gemma and Llama 2.
TURNS = {
    "smollm2": "{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}"
    "{{ '<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face"
    "<|im_end|>\n' }}{% endif %}{{'<|im_start|>' + message['role'] + '\n' + message['content'] + "
    "'<|im_end|>' + '\n'}}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}"
    "{% endif %}",
    "tinyllama": "{% for message in messages %}\n{% if message['role'] == 'user' %}\n"
    "{{ '<|user|>\n' + message['content'] + eos_token }}\n{% elif message['role'] == 'system' %}\n"
    "{{ '<|system|>\n' + message['content'] + eos_token }}\n"
    "{% elif message['role'] == 'assistant' %}\n"
    "{{ '<|assistant|>\n'  + message['content'] + eos_token }}\n{% endif %}\n"
    "{% if loop.last and add_generation_prompt %}\n{{ '<|assistant|>' }}\n{% endif %}\n"
    "{% endfor %}",
    "phi3": "{% for message in messages %}{% if message['role'] == 'system' %}{{'<|system|>\n' + "
    "message['content'] + '<|end|>\n'}}{% elif message['role'] == 'user' %}{{'<|user|>\n' + "
    "message['content'] + '<|end|>\n'}}{% elif message['role'] == 'assistant' %}"
    "{{'<|assistant|>\n' + message['content'] + '<|end|>\n'}}{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|assistant|>\n' }}{% else %}{{ eos_token }}{% endif %}",
    "llama3": "{% set loop_messages = messages %}{% for message in loop_messages %}{% set content = "
    "'<|start_header_id|>' + message['role'] + '<|end_header_id|>\n\n'+ message['content'] | trim + "
    "'<|eot_id|>' %}{% if loop.index0 == 0 %}{% set content = bos_token + content %}{% endif %}"
    "{{ content }}{% endfor %}{% if add_generation_prompt %}"
    "{{ '<|start_header_id|>assistant<|end_header_id|>\n\n' }}{% endif %}",
    "gemma": "{{ bos_token }}{% for message in messages %}{% if (message['role'] == 'assistant') %}"
    "{% set role = 'model' %}{% else %}{% set role = message['role'] %}{% endif %}"
    "{{ '<start_of_turn>' + role + '\n' + message['content'] | trim + '<end_of_turn>\n' }}"
    "{% endfor %}{% if add_generation_prompt %}{{'<start_of_turn>model\n'}}{% endif %}",
    "llama2": "{% if messages[0]['role'] == 'system' %}{% set loop_messages = messages[1:] %}"
    "{% set system_message = messages[0]['content'] %}{% else %}{% set loop_messages = messages %}"
    "{% set system_message = false %}{% endif %}{% for message in loop_messages %}"
    "{% if loop.index0 == 0 and system_message != false %}{% set content = '<<SYS>>\n' + "
    "system_message + '\n<</SYS>>\n\n' + message['content'] %}{% else %}"
    "{% set content = message['content'] %}{% endif %}{% if message['role'] == 'user' %}"
    "{{ bos_token + '[INST] ' + content.strip() + ' [/INST]' }}"
    "{% elif message['role'] == 'assistant' %}{{ ' '  + content.strip() + ' ' + eos_token }}"
    "{% endif %}{% endfor %}",
}


@pytest.mark.parametrize("name", TURNS)
def test_a_conversation_of_the_program_is_the_models_template(tmp_path, name):
    program = _library.find("sinter", "bin")
    if program is None:
        pytest.skip("the program is not built")
    folder = tmp_path / "model"
    shutil.copytree(SAMPLES / "tiny-llama", folder)
    config = {"bos_token": "<s>", "eos_token": "</s>", "chat_template": TURNS[name]}
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    said = ["Who is Mira?", " And Ida? ", "Why"]
    command = [program, "generate", folder, "--chat", "-n", "7", "--device", "cpu", "-q"]
    system = ["--system", "Be kind."] if name in ("phi3", "llama2") else []
    text = "\n".join(said)
    done = subprocess.run([*command, *system], input=text, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)
    template = environment.from_string(TURNS[name])
    messages, answers = [], ""
    if system:
        messages.append({"role": "system", "content": system[1]})
    with sinter.LanguageModel(folder, "cpu") as model:
        for message in said:
            messages.append({"role": "user", "content": message})
            given = {**config, "messages": messages, "add_generation_prompt": True}
            # The tokenizer puts <s> first; a template that writes it has one <s> alone.
            ids = model.encode(template.render(given).removeprefix("<s>"))
            ids = ids if "bos_token" in TURNS[name] else ids[1:]
            answer = model.generate(ids, count=7).text
            messages.append({"role": "assistant", "content": answer})
            answers += answer + "\n"
    assert done.stdout == answers
