"""python -m sinter ARGS: the program `sinter`, with its exit codes. `generate --chat` renders the
model's own chat template by jinja2, whichever it is. `convert MODEL.onnx -o FOLDER` is not of the
program: it needs the package onnx."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from sinter._bindings import Code
from sinter._library import PACKAGE, find
from sinter.errors import SinterError, usage
from sinter.gguf_metadata import gguf_file

FILES = ("tokenizer_config.json", "chat_template.jinja")


def main() -> None:
    if sys.argv[1:2] == ["convert"]:
        sys.exit(convert(sys.argv[2:]))
    program = find("sinter", "bin")
    if program is None:
        sys.exit(
            f"sinter: no program in {PACKAGE / 'bin'}; build it with ./dev build release sinter"
        )
    arguments = sys.argv[1:]
    try:
        if is_chat(arguments):
            arguments = with_rendered_chat(arguments)
    except SinterError as error:
        print(f"sinter: {error}", file=sys.stderr)
        sys.exit(int(error.code))
    os.execv(program, ["sinter", *arguments])


def convert(arguments: list[str]) -> int:
    """Writes an ONNX file as a folder with model.sir and its weights. Returns an exit code."""
    parser = argparse.ArgumentParser("python -m sinter convert", description=convert.__doc__)
    parser.add_argument("model", help="a file of ONNX")
    parser.add_argument(
        "-o", "--out", required=True, help="a folder that is empty or not there yet"
    )
    parser.add_argument(
        "--size",
        action="append",
        default=[],
        metavar="NAME=N",
        help="the size of a dynamic dim, the least and the largest one (batch=1..8), or a dim that "
        "is as large",
    )
    given = parser.parse_args(arguments)
    try:
        from sinter.onnx import from_onnx

        model = from_onnx(given.model, sizes=dict(map(size_of, given.size)))
        for note in model.notes:
            print(f"sinter: note: {note}", file=sys.stderr)
        print(f"sinter: {given.model} → {model.save(given.out)}", file=sys.stderr)
    except SinterError as error:
        print(f"sinter: {error}", file=sys.stderr)
        return int(error.code)
    except ImportError as error:
        print(f"sinter: {error.name} is not installed; pip install numpy onnx", file=sys.stderr)
        return int(Code.USAGE)
    return 0


def size_of(text: str) -> tuple[str, int | tuple[int, int] | str]:
    """A dim's name and size, of "batch=4", "batch=1..8" or "mask_batch=batch"."""
    name, _, size = text.partition("=")
    low, _, high = size.partition("..")
    if not name or not size:
        raise usage(f"--size {text}", "convert", "give NAME=N, NAME=LEAST..LARGEST or NAME=OTHER")
    if ".." in size and not (low.isdigit() and high.isdigit()):
        raise usage(f"--size {text}", "convert", "give the least and the largest size as numbers")
    if low.isdigit() and high.isdigit():
        return name, (int(low), int(high))
    return name, int(size) if size.isdigit() else size


def is_chat(arguments: list[str]) -> bool:
    """A chat whose template is the model's own."""
    named = any(one.partition("=")[0] == "--chat-template" for one in arguments)
    asks = "-h" in arguments or "--help" in arguments
    return arguments[:1] == ["generate"] and "--chat" in arguments and not named and not asks


def with_rendered_chat(arguments: list[str]) -> list[str]:
    """The arguments of `generate --chat` with the conversations as texts."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--chat", action="store_true")
    parser.add_argument("--system")
    parser.add_argument("--prompt", action="append", default=[])
    parser.add_argument("--prompt-file", action="append", default=[])
    parser.exit_on_error = False
    try:
        given, rest = parser.parse_known_args(arguments[1:])
    except argparse.ArgumentError as error:
        raise usage(str(error), "sinter generate") from None
    texts = [one_line_less(sys.stdin.read()) if one == "-" else one for one in given.prompt]
    for path in given.prompt_file:
        try:
            texts.append(one_line_less(Path(path).read_text(encoding="utf-8")))
        except (OSError, ValueError) as error:
            raise usage(f"cannot read it: {error}", path) from None
    folder = model_folder(rest)
    if folder is None or not texts:
        return arguments  # the program says what is missing
    from sinter.chat import ChatTemplate

    template = ChatTemplate(str(folder))
    system = [] if given.system is None else [{"role": "system", "content": given.system}]
    rendered = [template.render([*system, {"role": "user", "content": text}]) for text in texts]
    end = [f"--end-token={template.eos_token}"] if template.eos_token else []
    return ["generate", *rest, "--rendered-chat", *end, *(f"--prompt={text}" for text in rendered)]


def model_folder(arguments: list[str]) -> Path | None:
    """The folder among the arguments that has a tokenizer's settings, of a plan the one in it; or
    the GGUF file."""
    for one in arguments:
        for folder in (Path(one), Path(one) / "model"):
            if any((folder / name).is_file() for name in FILES) or gguf_file(folder):
                return folder
    return None


def one_line_less(text: str) -> str:
    """The text without the line break that a file or a shell puts behind it."""
    return text.removesuffix("\n").removesuffix("\r")


if __name__ == "__main__":
    main()
