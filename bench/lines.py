#!/usr/bin/env python3
"""Counts the lines of the product by room, today and at another commit.

    bench/lines.py [COMMIT]

A room is a folder at the root. Counted are tracked C++, CUDA, Python, JavaScript, CSS, CMake and
shell sources, without tests, benchmarks, samples and generated files. Lines of code, comments
(docstrings among them) and blank lines are counted apart. A COMMIT is compared with the files of
the working tree, uncommitted changes included.
"""

import io
import re
import subprocess
import sys
import tokenize
from collections import Counter, defaultdict

ENDINGS = {
    ".h": "//", ".cpp": "//", ".cuh": "//", ".cu": "//", ".def": "//", ".inc": "//", ".js": "//",
    ".css": "//", ".py": "#", ".cmake": "#", ".sh": "#",
}
LEFT_OUT = re.compile(r"(^|/)(tests?|planted)/|^(bench|samples|docs)/")
GENERATED = {"python/sinter/_bindings.py"}


def git(*words):
    return subprocess.run(["git", *words], check=True, capture_output=True).stdout


def style_of(path):
    """The comment sign of a product source, or None for a file that is not counted."""
    if LEFT_OUT.search(path) or path in GENERATED:
        return None
    if path in ("dev", ".ci/run") or path.endswith("CMakeLists.txt"):
        return "#"
    return next((sign for ending, sign in ENDINGS.items() if path.endswith(ending)), None)


def docstring_lines(text):
    """Numbers of the lines that hold a string which is a statement of its own."""
    lines = set()
    try:
        tokens = list(tokenize.generate_tokens(io.StringIO(text).readline))
    except (tokenize.TokenError, SyntaxError):
        return lines
    skipped = (tokenize.NL, tokenize.COMMENT, tokenize.INDENT, tokenize.DEDENT)
    before = tokenize.NEWLINE
    for token in tokens:
        if token.type == tokenize.STRING and before in (tokenize.NEWLINE, tokenize.ENCODING):
            lines.update(range(token.start[0], token.end[0] + 1))
        if token.type not in skipped:
            before = token.type
    return lines


def count(text, sign, is_python):
    """Lines of code, comment and blank lines of one file."""
    counted = Counter()
    documented = docstring_lines(text) if is_python else ()
    in_block = False
    for number, line in enumerate(text.splitlines(), 1):
        stripped = line.strip()
        if not stripped:
            counted["blank"] += 1
        elif in_block or stripped.startswith(sign) or number in documented:
            counted["comment"] += 1
            in_block = in_block and "*/" not in stripped
        elif sign == "//" and stripped.startswith("/*"):
            counted["comment"] += 1
            in_block = "*/" not in stripped
        else:
            counted["code"] += 1
    return counted


def rooms(commit=None):
    """Counts of each room: of the working tree, or of a commit."""
    if commit:
        paths = git("ls-tree", "-r", "--name-only", "-z", commit)
    else:
        paths = git("ls-files", "-z")
    found = defaultdict(Counter)
    wanted = [path for path in paths.decode().split("\0") if path and style_of(path)]
    if commit:
        listing = "".join(f"{commit}:{path}\n" for path in wanted)
        batch = subprocess.run(["git", "cat-file", "--batch"], input=listing.encode(), check=True,
                               capture_output=True).stdout
    place = 0
    for path in wanted:
        if commit:
            header_end = batch.index(b"\n", place)
            size = int(batch[place:header_end].split()[-1])
            text = batch[header_end + 1 : header_end + 1 + size]
            place = header_end + 1 + size + 1
        else:
            try:
                with open(path, "rb") as file:
                    text = file.read()
            except FileNotFoundError:  # deleted, and still in the index
                continue
        room = path.split("/")[0] if "/" in path and not path.startswith(".") else "(root)"
        counted = count(text.decode(errors="replace"), style_of(path), path.endswith(".py"))
        found[room].update(counted, files=1)
    return found


def main():
    if len(sys.argv) > 2 or sys.argv[1:2] in (["-h"], ["--help"]):
        sys.exit(__doc__)
    commit = sys.argv[1] if len(sys.argv) == 2 else None
    if commit:
        try:
            git("rev-parse", "--verify", "--quiet", commit + "^{commit}")
        except subprocess.CalledProcessError:
            sys.exit(f"lines: no commit '{commit}'")
    now = rooms()
    old = rooms(commit) if commit else None
    total, total_old = Counter(), Counter()
    columns = "{:12} {:>6} {:>8} {:>9} {:>7}"
    head = columns.format("room", "files", "code", "comments", "blank")
    print(head + (f"   code at {commit[:12]}  change" if commit else ""))

    def row(name, counted, before):
        line = columns.format(name, counted["files"], counted["code"], counted["comment"],
                              counted["blank"])
        if commit:
            width = len(f"   code at {commit[:12]}")
            change = counted["code"] - before["code"]
            line += f"{before['code']:>{width}}{change:>+8}"
        print(line)

    for name in sorted(set(now) | set(old or ())):
        before = old[name] if commit else Counter()
        row(name, now[name], before)
        total.update(now[name])
        total_old.update(before)
    row("all", total, total_old)


if __name__ == "__main__":
    main()
