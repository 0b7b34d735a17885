"""Published chat templates by Sinter's rendering beside transformers', byte for byte.

    python chat_templates.py FOLDER

FOLDER has the templates, `*.jinja`. Each renders every conversation below, with and without the
beginning of an answer. Where transformers refuses a conversation, Sinter must refuse it too. A line
for each template; the exit code is 1 if one differs. Needs transformers and jinja2, and no network.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from transformers import PreTrainedTokenizerFast

import sinter
from sinter.chat import ChatTemplate

Conversation = list[dict[str, Any]]

SYSTEM = {"role": "system", "content": "  Be kind.\nAnswer in one line. "}
QUESTION = {"role": "user", "content": "Who are you?"}
ANSWER = {"role": "assistant", "content": "<think>\nHm.\n</think>\n\nA graph compiler."}
SPECIAL = {
    "role": "user",
    "content": " <b>&amp;</b> 'x' \"y\" {{ z }} {% if %} \\n\n\n\ttab é 漢 \U0001f600\u2028 [INST] "
    "<|im_end|> ",
}
CALL = {
    "role": "assistant",
    "content": "",
    "tool_calls": [
        {
            "id": "call00001",
            "type": "function",
            "function": {
                "name": "find",
                "arguments": {"what": "é <x>", "most": 2.5, "deep": [None]},
            },
        }
    ],
}
RESULT = {"role": "tool", "name": "find", "tool_call_id": "call00001", "content": '{"found": "ü"}'}
PARTS = {
    "role": "user",
    "content": [{"type": "text", "text": "one "}, {"type": "text", "text": "two"}],
}
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "find",
            "description": 'Finds "it" & <more>.',
            "parameters": {
                "type": "object",
                "properties": {"what": {"type": "string", "description": "a text, é"}},
                "required": ["what"],
            },
        },
    }
]

CONVERSATIONS: dict[str, tuple[Conversation, dict[str, Any]]] = {
    "question": ([QUESTION], {}),
    "system": ([SYSTEM, QUESTION], {}),
    "turns": ([SYSTEM, QUESTION, ANSWER, SPECIAL, ANSWER, QUESTION], {}),
    "answered": ([QUESTION, ANSWER], {}),
    "special characters": ([SPECIAL], {}),
    "parts": ([PARTS], {}),
    "two users": ([QUESTION, QUESTION], {}),
    "tools": ([SYSTEM, QUESTION, CALL, RESULT, ANSWER, QUESTION], {"tools": TOOLS}),
}


def folder_of(template: str, place: Path) -> Path:
    """A folder with the template as a model has it."""
    place.mkdir()
    (place / "chat_template.jinja").write_text(template, encoding="utf-8")
    config = {"bos_token": "<s>", "eos_token": {"content": "</s>"}}
    (place / "tokenizer_config.json").write_text(json.dumps(config), encoding="utf-8")
    return place


def ours(template: ChatTemplate, messages: Conversation, given: dict[str, Any]) -> str | None:
    """None: the template refuses the conversation."""
    try:
        return template.render(messages, **given)
    except sinter.SinterError as error:
        if "refuses the messages" in str(error):
            return None
        raise


def theirs(tokenizer: Any, messages: Conversation, given: dict[str, Any]) -> str | None:
    try:
        return tokenizer.apply_chat_template(messages, tokenize=False, **given)
    except Exception:  # noqa: BLE001 whatever the template or jinja2 raises
        return None


def difference(a: str | None, b: str | None) -> str:
    """Where two renderings part; empty: nowhere."""
    if a == b:
        return ""
    if a is None or b is None:
        return f"refused by {'Sinter' if a is None else 'transformers'} alone"
    at = next((i for i, (x, y) in enumerate(zip(a, b)) if x != y), min(len(a), len(b)))
    return f"at {at}: {a[at : at + 40]!r}, transformers has {b[at : at + 40]!r}"


def compare(template: str, place: Path) -> tuple[list[str], int]:
    """The differences of a template, and how many renderings were equal texts."""
    folder = folder_of(template, place)
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=Tokenizer(WordLevel({"x": 0}, "x")), bos_token="<s>", eos_token="</s>"
    )
    tokenizer.chat_template = template
    own = ChatTemplate(str(folder))
    differences, texts = [], 0
    for name, (messages, variables) in CONVERSATIONS.items():
        for begins_answer in (True, False):
            given = {**variables, "add_generation_prompt": begins_answer}
            a, b = ours(own, messages, given), theirs(tokenizer, messages, given)
            texts += a == b and a is not None
            if found := difference(a, b):
                differences.append(f"{name}{'' if begins_answer else ', no prompt'}: {found}")
    return differences, texts


def main() -> None:
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    files = sorted(Path(sys.argv[1]).glob("*.jinja"))
    if not files:
        sys.exit(f"{sys.argv[1]}: no *.jinja is there")
    failed, renderings = 0, 2 * len(CONVERSATIONS)
    with tempfile.TemporaryDirectory() as place:
        for index, file in enumerate(files):
            try:
                found, texts = compare(file.read_text(encoding="utf-8"), Path(place) / str(index))
            except sinter.SinterError as error:
                found, texts = [str(error)], 0
            failed += bool(found)
            same = f"{texts} texts equal, {renderings - texts} refused by both"
            print(f"{file.name}: {'; '.join(found) if found else same}")
    print(f"{len(files)} templates, {failed} differ")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
