"""Conversations as text, by the chat template of a model's folder."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import Any, Mapping, Sequence

from sinter._bindings import Code
from sinter.errors import SinterError, bad_input, printable, usage

Message = Mapping[str, Any]


class ChatTemplate:
    """The Jinja template of a folder: chat_template.jinja, or "chat_template" of
    tokenizer_config.json. It came with the model, so it runs in a sandbox that changes nothing and
    has bounds."""

    def __init__(self, folder: str) -> None:
        try:
            import jinja2.sandbox  # noqa: F401
        except ImportError:
            raise SinterError(
                Code.USAGE, "jinja2 is not installed", "chat", "pip install 'sinter[chat]'"
            ) from None
        from sinter.bounded_template import BoundedTemplate

        path = Path(folder)
        config = _read_config(path / "tokenizer_config.json")
        text = _template_of(path, config)
        self.bos_token = _token_text(config.get("bos_token"))
        self.eos_token = _token_text(config.get("eos_token"))
        self._where = str(path)
        names = {"raise_exception": _refuse, "strftime_now": _now}
        try:
            self._template = BoundedTemplate(text, names, self._where)
        except SinterError:
            raise
        except Exception as error:
            raise bad_input(
                f"the chat template is not valid: {printable(str(error))}", self._where
            ) from None

    def render(self, messages: Sequence[Message], **variables: Any) -> str:
        """The conversation as text, up to where the model's answer begins."""
        if not messages:
            raise usage("there is no message", "chat", 'give [{"role": "user", "content": "..."}]')
        given = {
            "messages": list(messages),
            "bos_token": self.bos_token,
            "eos_token": self.eos_token,
            "add_generation_prompt": True,
            **variables,
        }
        try:
            return self._template.render(given)
        except SinterError:
            raise
        except Exception as error:
            raise bad_input(
                f"the chat template refuses the messages: {printable(str(error))}", self._where
            ) from None


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


def _template_of(folder: Path, config: dict[str, Any]) -> str:
    file = folder / "chat_template.jinja"
    if file.is_file():
        return file.read_text(encoding="utf-8")
    template = config.get("chat_template")
    if isinstance(template, list):  # several, by name
        by_name = {one.get("name"): one.get("template") for one in template}
        template = by_name.get("default")
    if not isinstance(template, str):
        raise usage(
            "the model has no chat template: neither chat_template.jinja nor chat_template in "
            "tokenizer_config.json",
            str(folder),
            "use generate() with a prompt in the model's format",
        )
    return template


def _token_text(token: Any) -> str:
    """A token in tokenizer_config.json is a text or an object with its content."""
    if isinstance(token, dict):
        token = token.get("content")
    return token if isinstance(token, str) else ""
