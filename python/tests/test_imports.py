"""No modules of the package import one another, and `sinter.importing` imports no framework."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1] / "sinter"
MAX_FILES = 25  # of a folder


def imports_of(path: Path) -> set[Path]:
    """The modules of the package that a module imports where it is loaded."""
    found: set[Path] = set()
    tree = ast.parse(path.read_text())
    inner = {node for outer in ast.walk(tree) if isinstance(outer, (ast.FunctionDef, ast.AsyncFunctionDef))
             for node in ast.walk(outer)}
    for node in ast.walk(tree):
        if not isinstance(node, ast.ImportFrom) or node.level == 0 or node in inner:
            continue
        folder = path.parents[node.level - 1]
        module = folder.joinpath(*(node.module or "").split(".")) if node.module else folder
        for name in node.names:
            for one in (module / f"{name.name}.py", module / name.name / "__init__.py", module.with_suffix(".py"),
                        module / "__init__.py"):
                if one.exists():
                    found.add(one)
                    break
    return found - {path}


def circle(graph: dict[Path, set[Path]]) -> list[Path]:
    """Modules that import one another, in order; none: there is no circle."""
    done: set[Path] = set()

    def walk(path: Path, above: list[Path]) -> list[Path]:
        if path in above:
            return above[above.index(path):]
        if path in done:
            return []
        done.add(path)
        for other in sorted(graph.get(path, ())):
            if found := walk(other, [*above, path]):
                return found
        return []

    return next((found for path in sorted(graph) if (found := walk(path, []))), [])


def test_no_modules_import_one_another() -> None:
    graph = {path: imports_of(path) for folder in ("importing", "onnx", "pytorch")
             for path in PACKAGE.glob(f"{folder}/**/*.py")}
    assert len(graph) > 80
    assert [str(path.relative_to(PACKAGE)) for path in circle(graph)] == []
    first, second = sorted(graph)[:2]
    assert circle({first: {second}, second: {first}})  # one is found


def test_folders_are_small() -> None:
    folders = [PACKAGE / "importing", *(path for name in ("onnx", "pytorch") for path in PACKAGE.glob(f"{name}/**")
                                        if path.is_dir())]
    assert {folder.name: len(list(folder.glob("*.py"))) for folder in folders
            if len(list(folder.glob("*.py"))) > MAX_FILES} == {}


def test_importing_needs_no_framework() -> None:
    names = sorted(path.stem for path in (PACKAGE / "importing").glob("*.py") if path.stem != "__init__")
    program = "import sys\n" + "".join(f"sys.modules[{name!r}] = None\n" for name in ("torch", "sympy", "numpy")) \
        + "".join(f"import sinter.importing.{name}\n" for name in names)
    subprocess.run([sys.executable, "-c", program], check=True)
