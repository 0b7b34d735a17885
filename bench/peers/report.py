"""Statistics, tables and files of the peers' measurements. Pure Python."""

import json
import math
import pathlib
import sys

MOST_SETS = 32768

def percentile(samples: list[float], share: float) -> float:
    """Linear between the two nearest samples."""
    ordered = sorted(samples)
    at = share * (len(ordered) - 1)
    low, high = math.floor(at), math.ceil(at)
    return ordered[low] + (at - low) * (ordered[high] - ordered[low])


def median(samples: list[float]) -> float:
    return percentile(samples, 0.5)


def summary(samples: list[float]) -> dict:
    """Samples keep their unit."""
    return {"median": median(samples), "p95": percentile(samples, 0.95), "samples": samples}


def sets_past_cache(input_bytes: int, cache_bytes: int) -> int:
    """How many sets of inputs take more than four times the cache, three at least: a set that
    comes round again has left it."""
    return min(max(4 * cache_bytes // input_bytes + 1, 3), MOST_SETS)


def calls_in_graph(sets: int, least: int = 8) -> int:
    """Whole rounds of the sets, at least `least` calls."""
    return sets * math.ceil(least / sets)


def terabytes_per_second(moved_bytes: int, microseconds: float) -> float:
    return moved_bytes / microseconds / 1e6


def table(header: list[str], rows: list[list[str]]) -> str:
    """Columns of text; the first is aligned to the left, the others to the right."""
    widths = [max(len(row[i]) for row in [header, *rows]) for i in range(len(header))]
    def line(row):
        cells = [cell.ljust(width) if i == 0 else cell.rjust(width)
                 for i, (cell, width) in enumerate(zip(row, widths))]
        return "  ".join(cells).rstrip()
    return "\n".join([line(header), *map(line, rows)])


def write_json(path: pathlib.Path, content: dict) -> None:
    path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def read_json(path: pathlib.Path) -> dict:
    return json.loads(path.read_text(encoding="utf-8"))


def progress(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
