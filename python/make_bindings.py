#!/usr/bin/env python3
"""Writes sinter/_bindings.py: the declarations of api/sinter_c.h for ctypes.

    python make_bindings.py            writes the file
    python make_bindings.py --check    compares, and fails if the file is not fresh

The header declares in few ways, and a declaration that is none of them is an error: handles
(`typedef struct x x;`), callbacks (`typedef R (*x)(...)`), one enum, one integer type, and
functions after SINTER_API or SINTER_MAY_FAIL.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
HEADER = ROOT / "api" / "sinter_c.h"
TARGET = ROOT / "python" / "sinter" / "_bindings.py"

SCALARS = {
    "int": "c_int",
    "double": "c_double",
    "float": "c_float",
    "int32_t": "c_int32",
    "int64_t": "c_int64",
    "uint32_t": "c_uint32",
    "size_t": "c_size_t",
}
INTEGERS = {kind for kind in SCALARS.values() if kind not in ("c_double", "c_float")}


class Header:
    """The declarations of the header, in its order."""

    def __init__(self, text: str) -> None:
        text = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
        text = re.sub(r"^\s*#.*$", "", text, flags=re.M)
        text = re.sub(r'extern "C" \{', "", text)
        self.handles = re.findall(r"typedef struct (\w+) \1;", text)
        self.enums = re.findall(r"typedef enum (\w+) \{(.*?)\} \1;", text, flags=re.S)
        self.integers = dict(re.findall(r"typedef (\w+_t) (\w+);", text))
        self.integers = {name: SCALARS[kind] for kind, name in self.integers.items()}
        self.callbacks = re.findall(r"typedef ([\w ]+\*?) ?\(\*(\w+)\)\((.*?)\);", text, flags=re.S)
        self.functions = re.findall(
            r"(?:SINTER_API|SINTER_MAY_FAIL)\s+([\w\s]+?[\s*]+)(\w+)\((.*?)\);", text, flags=re.S
        )
        rest = text
        for pattern in (
            r"typedef struct \w+ \w+;",
            r"typedef enum \w+ \{.*?\} \w+;",
            r"typedef \w+_t \w+;",
            r"typedef [\w ]+\*? ?\(\*\w+\)\(.*?\);",
            r"(?:SINTER_API|SINTER_MAY_FAIL)[^;]*;",
            r"\}",
        ):
            rest = re.sub(pattern, "", rest, flags=re.S)
        if rest.strip():
            raise SystemExit(f"{HEADER}: declarations of an unknown kind: {rest.split()[:8]}")

    def parameter(self, declared: str, name: str) -> str:
        """The type of a function's parameter: as `ctype`, but that numbers which enter the library
        are checked (sinter/integers.py)."""
        kind = self.ctype(declared)
        words = declared.replace("*", " * ").split()
        if kind == "c_void_p" and words[-2:] == ["void", "*"]:
            return f'Address("{name}")'
        if kind in INTEGERS:
            return f'Integer({kind}, "{name}")'
        pointed = re.fullmatch(r"POINTER\((\w+)\)", kind)
        if pointed and pointed[1] in INTEGERS and words[0] == "const":
            return f'Integers({pointed[1]}, "{name}")'
        return kind

    def ctype(self, declared: str) -> str:
        """The ctypes name of a C type. `const char*` is bytes; text that the caller frees
        (`char**`) stays an address."""
        words = declared.replace("*", " * ").split()
        stars = words.count("*")
        base = [word for word in words if word not in ("*", "const")]
        if len(base) != 1:
            raise SystemExit(f"{HEADER}: type '{declared}' is not understood")
        name, constant = base[0], words[0] == "const"
        if name == "void":
            if stars == 0:
                return "None"
            kind, stars = "c_void_p", stars - 1
        elif name == "char":
            kind, stars = ("c_char_p" if constant else "c_void_p"), stars - 1
        elif name in self.handles:
            kind, stars = name, stars - 1
        elif name in self.integers:
            kind = self.integers[name]
        elif name in SCALARS:
            kind = SCALARS[name]
        elif name in {enum for enum, _ in self.enums}:
            kind = "c_int"
        elif name in {callback for _, callback, _ in self.callbacks}:
            kind = name
        else:
            raise SystemExit(f"{HEADER}: type '{declared}' is not known")
        for _ in range(stars):
            kind = f"POINTER({kind})"
        return kind

    def arguments(self, text: str) -> list[tuple[str, str]]:
        """Type and name of each parameter."""
        if text.strip() == "void":
            return []
        parameters = []
        for argument in text.split(","):
            match = re.fullmatch(r"\s*(.*?[\s*])(\w+)\s*", argument, flags=re.S)
            if match is None:
                raise SystemExit(f"{HEADER}: argument '{argument.strip()}' is not understood")
            parameters.append((match[1], match[2]))
        return parameters


def bindings(header: Header) -> str:
    lines = [
        '"""api/sinter_c.h for ctypes, and the library. Written by make_bindings.py."""',
        "",
        "from __future__ import annotations",
        "",
        "import enum",
        "from ctypes import (",
        "    CFUNCTYPE,",
        "    POINTER,",
        "    c_char_p,",
        "    c_double,",
        "    c_float,",
        "    c_int,",
        "    c_int32,",
        "    c_int64,",
        "    c_size_t,",
        "    c_uint32,",
        "    c_void_p,",
        ")",
        "from typing import Any",
        "",
        "from sinter._library import Library",
        "from sinter.integers import Address, Integer, Integers",
        "",
    ]
    for handle in header.handles:
        lines += ["", f"class {handle}(c_void_p):", "    pass", ""]
    for name, body in header.enums:
        prefix = name.upper() + "_"
        words = [word.capitalize() for word in name.split("_")[1:]]
        lines += ["", f"class {''.join(words)}(enum.IntEnum):"]
        for item, value in re.findall(r"(\w+) = (\d+)", body):
            lines.append(f"    {item.removeprefix(prefix)} = {value}")
        lines.append("")
    lines.append("")
    for name, kind in header.integers.items():
        lines.append(f"{name} = {kind}")
    for result, name, arguments in header.callbacks:
        kinds = [header.ctype(declared) for declared, _ in header.arguments(arguments)]
        if kinds[-2:] == ["c_char_p", "c_size_t"]:  # a text that may have NULs
            kinds[-2] = "c_void_p"
        parts = [header.ctype(result.strip()), *kinds]
        lines.append(f"{name} = CFUNCTYPE({', '.join(parts)})")
    lines += ["", "FUNCTIONS: dict[str, tuple[Any, list[Any]]] = {"]
    for result, name, arguments in header.functions:
        kinds = ", ".join(header.parameter(*one) for one in header.arguments(arguments))
        kind = header.ctype(result.strip())
        line = f'    "{name}": ({kind}, [{kinds}]),'
        if len(line) > 100:
            line = f'    "{name}": (\n        {kind},\n        [{kinds}],\n    ),'
        lines.append(line)
    lines += ["}", "", "lib = Library(FUNCTIONS)", ""]
    return "\n".join(lines)


def main(arguments: list[str]) -> int:
    text = bindings(Header(HEADER.read_text()))
    if arguments == ["--check"]:
        if TARGET.read_text() == text:
            return 0
        print(f"{TARGET} is not what {HEADER} says; run python/make_bindings.py", file=sys.stderr)
        return 1
    if arguments:
        print(__doc__, file=sys.stderr)
        return 2
    TARGET.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
