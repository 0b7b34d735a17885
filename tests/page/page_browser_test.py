"""The pages of `sinter explain --html` and `sinter profile --html` in a headless Chromium: clicks, search,
permalinks, keyboard, print.

Usage: page_browser_test.py SINTER SAMPLES TEST_PROFILE. TEST_PROFILE is the test program that writes the page of a
profile that is made up. Prints "skipped: " and the reason where there is no browser.
"""

from __future__ import annotations

import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import browser  # noqa: E402

checks = failures = 0


def check(condition: object, what: str) -> None:
    global checks, failures
    checks += 1
    if not condition:
        failures += 1
        print("failed:", what)


def chip(tab: browser.Tab, name: str) -> str:
    """The selector of a value in the picture."""
    number = tab.value(f"entries[state.entry].number.get({json.dumps(name)})")
    return f".chip[data-value='{number}']"


def panel(tab: browser.Tab) -> str:
    return tab.value("document.getElementById('panel').innerText")


def check_answers(tab: browser.Tab, sinter: str, model: str) -> None:
    """The answers beside the picture equal `--why`'s."""
    tab.click(chip(tab, "l0.norm1"))
    check("Choose a second value" in panel(tab), "one value is chosen")
    tab.click(chip(tab, "l0.res1"))
    said = panel(tab)
    answers = json.loads(subprocess.run([sinter, "explain", model, "--json", "--phase", "prefill", "--why",
                                         "l0.norm1", "l0.res1"], capture_output=True, check=True).stdout)
    why = answers["answers"][0]
    for part in (why["text"], why["reason"], why["change"], *why["path"], why["first_refusal"]["text"]):
        check(part in said, f"the panel has {part!r}")
    lit = tab.value("[...document.querySelectorAll('.chip.path, .chip.pick')].map(c => c.textContent)")
    for value in why["path"]:
        check(any(text.endswith(value) for text in lit), f"{value} is lit")
    check(tab.value("document.querySelectorAll('.edge.path').length") > 0, "edges are lit")
    check(tab.value("decodeURIComponent(location.hash)") == "#why/prefill/l0.norm1/l0.res1", "the permalink")
    text = tab.value("markdown()")
    check("`l0.norm1`" in text and why["reason"] in text and "| value | op |" in text, "the Markdown")
    # Two that share a kernel.
    tab.press("Escape")
    check("What would pay" in panel(tab), "Escape clears")
    tab.click(chip(tab, "l0.res1"))
    tab.click(chip(tab, "l0.norm2"))
    check("They share a kernel" in panel(tab), "l0.res1 and l0.norm2 share a kernel")


def check_kernels(tab: browser.Tab) -> None:
    tab.value("document.querySelector('.box.kernel').focus()")
    tab.press("Enter", "\r")
    said = panel(tab)
    for part in ("Ops", "predicted", "grid", "CUDA text", "__global__"):
        check(part in said, f"a kernel's panel has {part}")
    check(tab.value("location.hash").startswith("#kernel/"), "a kernel has a permalink")
    tab.press("f", "f")
    check(tab.value("document.querySelectorAll('.box').length") > 0, "the unfused plan")
    check(tab.value("document.querySelector('svg .box').dataset.kind") == "unfused", "f shows the unfused plan")
    tab.press("f", "f")
    check(tab.value("document.querySelectorAll('.picture').length") == 2, "side by side")
    tab.press("f", "f")
    tab.press("2", "2")
    check(tab.value("entries[state.entry].title") == tab.value("entries[1].title"), "2 shows the second entry")
    tab.press("1", "1")


def check_search(tab: browser.Tab) -> None:
    tab.press("/")
    check(tab.value("document.activeElement.id") == "search", "/ goes to the search")
    tab.type("attn_out")
    check(tab.value("document.querySelectorAll('#found div').length") > 0, "attn_out is found")
    tab.press("Enter", "\r")
    check("attn_out" in panel(tab), "Enter takes what was found")
    for query, kind in (("add_rms_norm", "kernel"), ("convexity", "reason"), ("l1.attn", "value")):
        kinds = tab.value(f"searchAll({json.dumps(query)}).map(one => one.kind)")
        check(kind in kinds, f"{query} finds a {kind}")


def check_paper(tab: browser.Tab) -> None:
    tab.call("Emulation.setEmulatedMedia", media="print")
    check(tab.value("getComputedStyle(document.querySelector('.bar')).display") == "none", "no buttons on paper")
    check(tab.value("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)", "white paper")
    tab.call("Emulation.setEmulatedMedia", media="")
    check(tab.printed().startswith(b"%PDF"), "it prints")
    tab.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark"}])
    dark = tab.value("getComputedStyle(document.body).backgroundColor")
    check(dark == "rgb(20, 24, 31)", f"dark: {dark}")
    tab.press("t", "t")
    check(tab.value("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)", "t: light")


def check_worths(tab: browser.Tab, sinter: str, model: str) -> None:
    """The panel lists what would pay in the order of the program's text."""
    text = subprocess.run([sinter, "explain", model], capture_output=True, check=True, text=True).stdout
    said = re.findall(r"^ +(?:at most )?[0-9.]+ .s +[0-9.]+ % +[0-9]+× +(\S+) and (\S+): ", text.split("\ndecode, ")[0], re.M)
    rows = tab.value("[...document.querySelectorAll('#panel tr.go')].map(row => [...row.querySelectorAll('code')]"
                     ".map(code => code.textContent))")
    check(len(said) > 3 and [tuple(row) for row in rows] == said, f"what would pay: {rows}, the text has {said}")


def check_widths(chromium: browser.Browser, address: str) -> None:
    """Nothing beside the pictures and code scrolls sideways."""
    for width in (1400, 1000, 800):
        tab = browser.Tab(chromium, address, width)
        for view in ("entry", "kernel"):
            if view == "kernel":
                tab.value("pickKernel(0, 0)")
            wide = tab.value("[...document.querySelectorAll('html, body, #panel, #panel table, #tables')]"
                             ".filter(one => one.scrollWidth > one.clientWidth).map(one => one.tagName + ' ' + one.scrollWidth)")
            check(not wide, f"{view} at {width} pixels: {wide}")


def check_many_values(tab: browser.Tab) -> None:
    """The page looks for a path itself where the answer is not stored."""
    tab.value("pickPair(0, entries[0].number.get('v1'), entries[0].number.get('v150'))")
    said = panel(tab)
    check("They do not share a kernel" in said and "fusion was not asked" in said, "two values far apart")
    check("v1 → v2 → v3" in said and "v149 → v150" in said, "the path between them")
    check("First on the path" in said, "the first refusal on it")
    check("explain" in said and "--why v1 v150" in said, "the command with the verdict")


def check_profile(tab: browser.Tab) -> None:
    """The figures of tests/driver/profile_report_test.cpp: two kernels, three launches."""
    bars = "[...document.querySelectorAll('.bar-row')].map(row => row.getAttribute('aria-label'))"
    labels = tab.value(bars)
    for label in ("products, 5.00 µs, 83.3 %", "norms, 1.00 µs, 16.7 %", "gemm 1x64x64 bf16, 5.00 µs, 83.3 %, 2×",
                  "add_rms_norm_1a2b, 1.00 µs, 16.7 %, 1×"):
        check(label in labels, f"a bar of {label!r}")
    check(tab.value("document.querySelectorAll('#timeline rect').length") == 3, "three launches on the time line")
    check(tab.value("document.querySelectorAll('#roofline .dot').length") == 1, "one kernel counts operations")
    check("Click a bar" in panel(tab), "no kernel is chosen")
    tab.click(".bar-row[role='button'][data-row='1'] rect")
    said = panel(tab)
    for part in ("add_rms_norm_1a2b", "norms", "l*.res1 l*.norm2", "grid"):
        check(part in said, f"the panel has {part}")
    check(tab.value("decodeURIComponent(location.hash)") == "#kernel/add_rms_norm_1a2b", "a kernel has a permalink")
    faint = "[...document.querySelectorAll('#timeline rect')].filter(r => r.style.opacity === '0.25').length"
    check(tab.value(faint) == 2, "the other launches are faint")
    width = tab.value("document.querySelector('#timeline svg').width.baseVal.value")
    tab.click(".buttons button")
    check(tab.value("document.querySelector('#timeline svg').width.baseVal.value") == 2 * width, "a longer time line")
    tab.press("Escape")
    check("Click a bar" in panel(tab) and tab.value(faint) == 0, "Escape clears")
    tab.value("document.querySelector('.bar-row[role=\"button\"]').focus()")
    tab.press("Enter", "\r")
    check("gemm 1x64x64 bf16" in panel(tab), "Enter chooses a bar")
    text = tab.value("markdown()")
    check("| `gemm 1x64x64 bf16` | products | 2 | 5.00 µs | 83.3 % |" in text, "the Markdown")


def run(program: str, sinter: str, samples: str, test_driver: str) -> None:
    model = samples + "/small-llama"
    with tempfile.TemporaryDirectory() as folder, browser.Browser(program) as chromium:
        page = pathlib.Path(folder) / "page.html"
        subprocess.run([sinter, "explain", model, "--html", str(page)], check=True)
        tab = browser.Tab(chromium, page.as_uri())
        check_worths(tab, sinter, model)
        check_widths(chromium, page.as_uri())
        check_answers(tab, sinter, model)
        check_kernels(tab)
        check_search(tab)
        check_paper(tab)
        check(not tab.failures(), "\n".join(tab.failures()))
        linked = browser.Tab(chromium, page.as_uri() + "#why/prefill/l0.norm1/l0.res1")
        check("They do not share a kernel" in panel(linked), "a permalink opens its verdict")
        check(not linked.failures(), "\n".join(linked.failures()))
        module = pathlib.Path(folder) / "chain.sir"
        ops = "".join(f"    %v{i} = {'softmax' if i % 2 else 'cumulative_sum'} %v{i - 1}{'' if i % 2 else ' {axis = 0}'}\n"
                      for i in range(1, 200))
        module.write_text("module @m {\n  entry @main(%v0: f32[8, 64]) -> (%v199) {\n" + ops + "  }\n}\n")
        subprocess.run([sinter, "explain", str(module), "--html", str(page)], check=True)
        tab = browser.Tab(chromium, page.as_uri())
        check_many_values(tab)
        check(not tab.failures(), "\n".join(tab.failures()))
        page = pathlib.Path(folder) / "profile.html"
        subprocess.run([test_driver, "-tc=the page has the rows*"], check=True, stdout=subprocess.DEVNULL,
                       env={**os.environ, "SINTER_PROFILE_PAGE": str(page)})
        tab = browser.Tab(chromium, page.as_uri())
        check_profile(tab)
        check_paper(tab)
        check(not tab.failures(), "\n".join(tab.failures()))


if __name__ == "__main__":
    found = browser.find()
    if found is None:
        print("skipped: no Chromium; `./dev test page` installs it")
        sys.exit(0)
    run(found, *sys.argv[1:4])
    print(f"{checks - failures} checks passed, {failures} failed")
    sys.exit(1 if failures else 0)
