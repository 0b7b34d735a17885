"""A headless Chromium, spoken to through the DevTools protocol over pipes: no package is needed."""

from __future__ import annotations

import base64
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import time

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")


def find() -> str | None:
    given = os.environ.get("SINTER_BROWSER")
    return given or next((path for path in map(shutil.which, NAMES) if path), None)


class Browser:
    """Pages of one process; ends with it. Waits are bounded by `patience` seconds."""

    patience = 60

    def __init__(self, program: str) -> None:
        self._folder = tempfile.mkdtemp(prefix="sinter-browser-")
        read, self._write = os.pipe()
        self._read, write = os.pipe()
        # Chromium reads commands from descriptor 3 and writes answers to 4.
        high = [os.dup2(read, 63), os.dup2(write, 64)]
        command = [program, "--headless=new", "--remote-debugging-pipe", "--no-sandbox", "--disable-gpu",
                   "--disable-dev-shm-usage", "--no-first-run", "--hide-scrollbars",
                   f"--user-data-dir={self._folder}", "about:blank"]
        script = 'exec 3<&63 4>&64 63<&- 64>&-; exec "$@"'
        self._process = subprocess.Popen(["bash", "-c", script, "browser", *command], pass_fds=high,
                                         stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                         env={**os.environ, "HOME": self._folder}, start_new_session=True)
        for descriptor in {read, write, *high}:
            os.close(descriptor)
        self._buffer, self._next, self.events = b"", 0, []

    def __enter__(self) -> Browser:
        return self

    def __exit__(self, *error: object) -> None:
        try:
            self.call("Browser.close")
            self._process.wait(10)
        except (OSError, RuntimeError, subprocess.TimeoutExpired):
            self._process.kill()
            self._process.wait()
        os.close(self._read)
        os.close(self._write)
        shutil.rmtree(self._folder, ignore_errors=True)

    def call(self, method: str, session: str | None = None, **parameters: object) -> dict:
        self._next += 1
        message = {"id": self._next, "method": method, "params": parameters}
        if session:
            message["sessionId"] = session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        end = time.monotonic() + self.patience
        while time.monotonic() < end:
            answer = self._receive()
            if answer.get("id") == self._next:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']['message']}")
                return answer["result"]
            self.events.append(answer)
        raise RuntimeError(f"{method}: no answer in {self.patience} s")

    def _receive(self) -> dict:
        while b"\0" not in self._buffer:
            more = os.read(self._read, 1 << 20)
            if not more:
                raise RuntimeError("the browser ended")
            self._buffer += more
        message, self._buffer = self._buffer.split(b"\0", 1)
        return json.loads(message)


class Tab:
    """A page that is loaded. Errors of its scripts and addresses that it asked for are kept by the browser."""

    def __init__(self, browser: Browser, address: str, width: int = 1500, height: int = 1000) -> None:
        self.browser = browser
        target = browser.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = browser.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network"):
            self.call(domain + ".enable")
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        begin = time.monotonic()
        self.call("Page.navigate", url=address)
        while self.value("document.readyState") != "complete":
            time.sleep(0.05)
        self.opened_s = time.monotonic() - begin

    def call(self, method: str, **parameters: object) -> dict:
        return self.browser.call(method, self.session, **parameters)

    def value(self, expression: str) -> object:
        """The value of an expression of JavaScript; raises where it throws."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            details = answer["exceptionDetails"]
            raise RuntimeError(details.get("exception", {}).get("description", details["text"]))
        return answer["result"].get("value")

    def press(self, key: str, text: str = "", modifiers: int = 0) -> None:
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, text=text if kind == "keyDown" else "",
                      modifiers=modifiers, windowsVirtualKeyCode={"Enter": 13, "Escape": 27, "Tab": 9, "ArrowDown": 40,
                                                                  "ArrowUp": 38}.get(key, ord(key[0].upper())))

    def type(self, text: str) -> None:
        self.call("Input.insertText", text=text)

    def click(self, selector: str) -> None:
        """Clicks with the mouse in the middle of an element."""
        name = json.dumps(selector)
        self.value(f"document.querySelector({name}).scrollIntoView({{block: 'center'}})")
        x, y = self.value(f"(() => {{ const r = document.querySelector({name}).getBoundingClientRect();"
                          "return [r.x + Math.min(r.width, 60) / 2, r.y + Math.min(r.height, 20) / 2]; })()")
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def screenshot(self, path: str | pathlib.Path, whole: bool = False) -> None:
        picture = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        pathlib.Path(path).write_bytes(base64.b64decode(picture["data"]))

    def printed(self) -> bytes:
        return base64.b64decode(self.call("Page.printToPDF", printBackground=True)["data"])

    def failures(self) -> list[str]:
        """Errors of the page's scripts, and the files that it loaded beside itself."""
        list_ = []
        for event in self.browser.events:
            if event.get("sessionId") != self.session:
                continue
            if event["method"] == "Runtime.exceptionThrown":
                list_.append(json.dumps(event["params"]["exceptionDetails"])[:400])
            elif event["method"] == "Network.requestWillBeSent":
                url = event["params"]["request"]["url"]
                if not url.startswith(("file:", "data:", "about:")):
                    list_.append("loads " + url)
        return list_
