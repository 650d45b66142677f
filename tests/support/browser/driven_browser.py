"""A Chromium that is driven over two pipes, and what it did while a page was open."""

import json
import os
import select
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import Any

HANGS_AFTER_S = 120
FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-background-networking --no-first-run "
    "--remote-debugging-pipe --hide-scrollbars --window-size=1400,900"
)
COMPLAINTS = {"Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded"}
CODES = {"ArrowRight": 39, "ArrowLeft": 37, "Home": 36, "End": 35, " ": 32, "j": 74, "k": 75}


class Browser:
    """One process; each page that it opens is a new one."""

    def __init__(self, chromium: str, profile: Path):
        to_browser, self._out = os.pipe()
        self._in, from_browser = os.pipe()
        # The protocol is spoken on descriptors 3 and 4.
        wired = f'exec "$0" "$@" 3<&{to_browser} 4>&{from_browser}'
        command = ["bash", "-c", wired, chromium, *FLAGS.split(), f"--user-data-dir={profile}"]
        self._process = subprocess.Popen(
            command,
            pass_fds=(to_browser, from_browser),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_browser)
        os.close(from_browser)
        self._number, self._buffer = 0, b""
        self.events: list[dict[str, Any]] = []

    def send(self, method: str, session: str | None = None, **params: Any) -> dict[str, Any]:
        """Ask for something, and wait for the answer; events that come before it are kept."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": params}
        if session:
            message["sessionId"] = session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while (answer := self._read()).get("id") != self._number:
            self.events.append(answer)
        assert "error" not in answer, answer["error"]
        return answer["result"]

    def wait_for(self, method: str) -> None:
        while not any(event.get("method") == method for event in self.events):
            self.events.append(self._read())

    def _read(self) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._in], [], [], HANGS_AFTER_S)
            assert ready, "the browser does not answer"
            read = os.read(self._in, 1 << 20)
            assert read, "the browser has ended"
            self._buffer += read
        message, self._buffer = self._buffer.split(b"\0", 1)
        return json.loads(message)

    def close(self) -> None:
        with suppress(AssertionError, OSError):
            self.send("Browser.close")
        os.close(self._out)
        os.close(self._in)
        try:
            self._process.wait(HANGS_AFTER_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def open(self, url: str, **media: str) -> "Page":
        self.events.clear()
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.send(f"{domain}.enable", session)
        features = [{"name": name, "value": value} for name, value in media.items()]
        self.send("Emulation.setEmulatedMedia", session, features=features)
        self.send("Page.navigate", session, url=url)
        self.wait_for("Page.loadEventFired")
        return Page(self, session)


class Page:
    """An open page."""

    def __init__(self, browser: Browser, session: str):
        self._browser, self._session = browser, session

    def value(self, expression: str) -> Any:
        """The value of an expression; a promise is waited for."""
        answer = self._browser.send(
            "Runtime.evaluate",
            self._session,
            expression=expression,
            returnByValue=True,
            awaitPromise=True,
        )
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def text(self, selector: str) -> str:
        """What can be read in the first such element."""
        return self.value(f"document.querySelector({json.dumps(selector)}).innerText")

    def count(self, selector: str) -> int:
        return self.value(f"document.querySelectorAll({json.dumps(selector)}).length")

    def press(self, *keys: str) -> None:
        for key in keys:
            for what in ("keyDown", "keyUp"):
                self._browser.send(
                    "Input.dispatchKeyEvent",
                    self._session,
                    type=what,
                    key=key,
                    windowsVirtualKeyCode=CODES[key],
                )

    def address_after(self, action: str) -> str:
        """Do what changes the address, wait until it has changed, and give the new one."""
        return self.value(
            "new Promise(resolve => {"
            "addEventListener('hashchange', () => resolve(location.hash), {once: true});"
            f"{action}}})"
        )

    @property
    def complaints(self) -> list[Any]:
        """All that was logged or thrown."""
        self.value("0")  # all earlier messages have arrived
        return [e["params"] for e in self._browser.events if e.get("method") in COMPLAINTS]

    @property
    def requests(self) -> list[str]:
        """The addresses that were asked for."""
        asked = (e for e in self._browser.events if e.get("method") == "Network.requestWillBeSent")
        return [event["params"]["request"]["url"] for event in asked]
