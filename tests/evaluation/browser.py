"""A headless Chromium, spoken to through its debugging pipe: JSON messages with a NUL between them."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import select
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_OPTIONS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync --disable-dev-shm-usage --disable-extensions --remote-debugging-pipe"
).split()
_SECONDS = 60.0


def find_chromium() -> str | None:
    """The program, or None where there is none."""
    return next((found for name in _NAMES if (found := shutil.which(name))), None)


class Browser:
    """One page in a browser. `events` are all messages that it sent unasked, `requests` the addresses it asked for."""

    def __init__(self, reader: int, writer: int) -> None:
        self._reader = reader
        self._writer = writer
        self._buffer = b""
        self._number = 0
        self._session: str | None = None
        self.events: list[dict[str, Any]] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """What a method of the protocol returns. Raises `RuntimeError` with the browser's own words."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._writer, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']['message']}")
                result: dict[str, Any] = answer["result"]
                return result
            self.events.append(answer)

    def open(self, page: Path) -> None:
        """Go to a file and wait until it is loaded."""
        self.events.clear()
        self.call("Page.navigate", url=page.as_uri())
        while not any(event.get("method") == "Page.loadEventFired" for event in self.events):
            self.events.append(self._next())

    def ask(self, expression: str) -> Any:
        """The value of a JavaScript expression on the page."""
        found = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        if "exceptionDetails" in found:
            raise RuntimeError(found["exceptionDetails"]["exception"].get("description", expression))
        return found["result"].get("value")

    def screen(self, width: int, height: int, *, mobile: bool = False) -> None:
        """The size of the window, in CSS pixels."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=mobile)

    def colour_scheme(self, name: str, medium: str = "") -> None:
        """`light` or `dark`, as the user's system would say, on the screen or for another `medium`."""
        features = [{"name": "prefers-color-scheme", "value": name}]
        self.call("Emulation.setEmulatedMedia", media=medium, features=features)

    @property
    def requests(self) -> list[str]:
        """Addresses that the page asked for."""
        return [each["params"]["request"]["url"] for each in self._sent("Network.requestWillBeSent")]

    @property
    def complaints(self) -> list[str]:
        """Errors and other messages of the console, of scripts and of the content security policy."""
        kinds = ("Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded")
        return [json.dumps(each["params"]) for kind in kinds for each in self._sent(kind)]

    def _sent(self, method: str) -> list[dict[str, Any]]:
        return [event for event in self.events if event.get("method") == method]

    def _next(self) -> dict[str, Any]:
        deadline = time.monotonic() + _SECONDS
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._reader], [], [], max(0.0, deadline - time.monotonic()))
            data = os.read(self._reader, 1 << 20) if ready else b""
            if not data:
                raise RuntimeError("the browser has ended or does not answer")
            self._buffer += data
        message, _, self._buffer = self._buffer.partition(b"\0")
        decoded: dict[str, Any] = json.loads(message)
        return decoded


@contextlib.contextmanager
def chromium(program: str, profile: Path) -> Iterator[Browser]:
    """A browser with a new profile, ended at the end."""
    theirs_in, ours_out = os.pipe()
    ours_in, theirs_out = os.pipe()
    # The browser reads from descriptor 3 and writes to 4, which may be taken here: out of the way, then in place.
    reader, writer = (fcntl.fcntl(end, fcntl.F_DUPFD, 10) for end in (theirs_in, theirs_out))
    with open(profile.with_suffix(".log"), "wb") as log:
        process = subprocess.Popen(
            [
                "bash",
                "-c",
                f'exec "$@" 3<&{reader} 4>&{writer}',
                "bash",
                program,
                *_OPTIONS,
                f"--user-data-dir={profile}",
            ],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            pass_fds=(reader, writer),
        )
    for end in (theirs_in, theirs_out, reader, writer):
        os.close(end)
    try:
        yield Browser(ours_in, ours_out)
    finally:
        for end in (ours_in, ours_out):
            os.close(end)
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
