"""python -m sinter ARGS: the program `sinter`, with its exit codes."""

import os
import sys

from sinter._library import PACKAGE, find


def main() -> None:
    program = find("sinter", "bin")
    if program is None:
        sys.exit(
            f"sinter: no program in {PACKAGE / 'bin'}; build it with ./dev build release sinter"
        )
    os.execv(program, ["sinter", *sys.argv[1:]])


if __name__ == "__main__":
    main()
