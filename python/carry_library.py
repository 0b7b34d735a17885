"""Puts libsinter.so and the program `sinter` into a wheel.

They come from SINTER_BUILD, a folder of build/; by default build/release of the clone.
SINTER_PLATFORM is the wheel's platform, as `./dev wheel` finds it; by default the platform of a
Linux like this one. An editable installation carries nothing: the package finds build/release of
its clone.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class CarryLibrary(BuildHookInterface):
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable":
            return
        build = Path(os.environ.get("SINTER_BUILD", Path(self.root).parent / "build" / "release"))
        carried = {
            build / "libsinter.so.0": "sinter/lib/libsinter.so.0",
            build / "bin" / "sinter": "sinter/bin/sinter",
        }
        for file, place in carried.items():
            if not file.is_file():
                raise SystemExit(
                    f"no {file}; build it with ./dev build release sinter sinter_library, "
                    "or set SINTER_BUILD to a folder of build/"
                )
            build_data["force_include"][str(file.resolve())] = place
        build_data["pure_python"] = False
        platform = os.environ.get("SINTER_PLATFORM", "linux_x86_64")
        build_data["tag"] = f"py3-none-{platform}"
