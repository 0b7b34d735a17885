"""Conversations as text, by the chat template of a model's folder."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import Any, Mapping, Sequence

from sinter.errors import SinterError, bad_input, printable, usage
from sinter.extras import needed
from sinter.gguf_metadata import gguf_file, tokenizer_config

Message = Mapping[str, Any]


class ChatTemplate:
    """The Jinja templates of a folder: chat_template.jinja and those of additional_chat_templates,
    or "chat_template" of tokenizer_config.json, or of a GGUF file. They came with the model, so they run in a sandbox
    that changes nothing and has bounds. Where the conversation has tools, the template "tool_use"
    counts, else "default"."""

    def __init__(self, folder: str) -> None:
        needed("jinja2.sandbox", "chat")
        path = Path(folder)
        gguf = gguf_file(path)
        config = tokenizer_config(gguf) if gguf else _read_config(path / "tokenizer_config.json")
        self._texts = _templates_of(path, config)
        self._tokens = _named_tokens(path, config)
        self.eos_token = self._tokens["eos_token"]
        self._where = str(path)
        self._compiled: dict[str, Any] = {}
        self._template("default" if "default" in self._texts else min(self._texts))

    def render(self, messages: Sequence[Message], **variables: Any) -> str:
        """The conversation as text, up to where the model's answer begins."""
        if not messages:
            raise usage("there is no message", "chat", 'give [{"role": "user", "content": "..."}]')
        given = {
            **self._tokens,
            "messages": list(messages),
            "add_generation_prompt": True,
            **variables,
        }
        name = "tool_use" if given.get("tools") is not None else "default"
        if name not in self._texts:
            name = "default"
        if name not in self._texts:
            raise usage(
                "the model has several chat templates and none is the default: "
                + printable(", ".join(sorted(self._texts))),
                self._where,
                "keep one of them as chat_template.jinja",
            )
        template = self._template(name)
        try:
            return str(template.render(given))
        except SinterError:
            raise
        except Exception as error:
            raise bad_input(
                f"the chat template refuses the messages: {printable(str(error))}", self._where
            ) from None

    def _template(self, name: str) -> Any:
        from sinter.bounded_template import BoundedTemplate

        if name not in self._compiled:
            names = {"raise_exception": _refuse, "strftime_now": _now}
            try:
                self._compiled[name] = BoundedTemplate(self._texts[name], names, self._where)
            except SinterError:
                raise
            except Exception as error:
                raise bad_input(
                    f"the chat template is not valid: {printable(str(error))}", self._where
                ) from None
        return self._compiled[name]


def _refuse(message: Any) -> None:
    raise bad_input(f"the chat template refuses the messages: {printable(str(message))}", "chat")


def _now(form: str) -> str:
    if len(form) > 1000:
        raise bad_input(f"the chat template writes the time in {len(form):,} characters", "chat")
    return datetime.now().strftime(form)


def _read_config(path: Path) -> dict[str, Any]:
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise bad_input(f"cannot read it: {error}", str(path)) from error
    if not isinstance(config, dict):
        raise bad_input("it is no JSON object", str(path))
    return config


def _templates_of(folder: Path, config: dict[str, Any]) -> dict[str, str]:
    """Templates by name. Files count before tokenizer_config.json."""
    files = {path.stem: path for path in (folder / "additional_chat_templates").glob("*.jinja")}
    if (folder / "chat_template.jinja").is_file():
        files.setdefault("default", folder / "chat_template.jinja")
    if files:
        return {name: path.read_text(encoding="utf-8") for name, path in files.items()}
    template = config.get("chat_template")
    templates = {"default": template}
    if isinstance(template, list):  # several, by name
        templates = {one.get("name"): one.get("template") for one in template}
    templates = {name: text for name, text in templates.items() if isinstance(text, str)}
    if not templates:
        raise usage(
            "the model has no chat template: neither chat_template.jinja nor chat_template in "
            "tokenizer_config.json",
            str(folder),
            "use generate() with a prompt in the model's format, or `sinter generate --chat "
            "--chat-template NAME`",
        )
    return templates


def _named_tokens(folder: Path, config: dict[str, Any]) -> dict[str, str]:
    """Texts of the tokens that a template can name, as the tokenizer reads them."""
    files = [config]
    if config.get("added_tokens_decoder") is None and folder.is_dir():
        files.append(_read_config(folder / "special_tokens_map.json"))
    tokens = {"bos_token": "", "eos_token": ""}
    for file in files:
        named = {key: token for key, token in file.items() if key.endswith("_token")}
        extra = file.get("extra_special_tokens")
        for key, token in {**named, **(extra if isinstance(extra, dict) else {})}.items():
            text = token.get("content") if isinstance(token, dict) else token
            if isinstance(text, str):
                tokens[key] = text
    return tokens
