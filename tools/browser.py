"""Drives Debian's Chromium over a pipe, with the DevTools protocol and no package.

https://chromedevtools.github.io/devtools-protocol/, read 2026-11-28.
"""

import base64
import itertools
import json
import os
import select
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

_SECONDS: Final = 60.0
_CONDITION_SECONDS: Final = 0.05
# What Chromium says of a call into a document that goes away.
_NAVIGATING: Final = (
    "Inspected target navigated",
    "Execution context was destroyed",
    "context with",
)


class Browser:
    """One page of a browser, on the file descriptors that Chromium reads and writes."""

    def __init__(self, send: int, receive: int) -> None:
        self._send, self._receive = send, receive
        self._numbers = itertools.count(1)
        self._rest = b""
        self._session: str | None = None
        self.events: list[dict[str, Any]] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **arguments: Any) -> dict[str, Any]:
        """Returns the answer of a command; events that come before it are kept."""
        number = next(self._numbers)
        message: dict[str, Any] = {"id": number, "method": method, "params": arguments}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._send, json.dumps(message).encode() + b"\0")
        while True:
            found = self._read(method)
            if found.get("id") != number:
                self.events.append(found)
                continue
            if "error" in found:
                raise RuntimeError(f"{method}: {found['error']['message']}")
            answer: dict[str, Any] = found["result"]
            return answer

    def _read(self, method: str) -> dict[str, Any]:
        while b"\0" not in self._rest:
            if not select.select([self._receive], [], [], _SECONDS)[0]:
                raise TimeoutError(f"Chromium does not answer {method}")
            part = os.read(self._receive, 1 << 20)
            if not part:
                raise RuntimeError("Chromium has ended")
            self._rest += part
        message, _, self._rest = self._rest.partition(b"\0")
        found: dict[str, Any] = json.loads(message)
        return found

    def evaluate(self, expression: str) -> Any:
        found = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        if "exceptionDetails" in found:
            raise RuntimeError(f"{expression}: {found['exceptionDetails']}")
        return found["result"].get("value")

    def wait(self, condition: str) -> None:
        """Waits until an expression is true in the page; raises `TimeoutError` with its text.

        Between two pages there is no document, or not the whole of one: a failure is not true yet.
        """
        end = time.monotonic() + _SECONDS
        guarded = f"(() => {{ try {{ return Boolean({condition}) }} catch {{ return false }} }})()"
        while not self._is_true(guarded):
            if time.monotonic() > end:
                text = self.evaluate("document.body?.innerText")
                raise TimeoutError(f"never true: {condition}; the page says:\n{text}")
            time.sleep(_CONDITION_SECONDS)

    def _is_true(self, expression: str) -> bool:
        try:
            return bool(self.evaluate(expression))
        except RuntimeError as error:
            if any(each in str(error) for each in _NAVIGATING):
                return False
            raise

    def open(self, address: str) -> None:
        self.call("Page.navigate", url=address)

    def go(self, path: str, ready: str) -> None:
        """Goes to a page of the same site, and waits until it has what a selector names.

        The old document stays for a while, and may have the same.
        """
        self.evaluate(f"window.isLeft = true; location.assign({json.dumps(path)})")
        self.wait(f"!window.isLeft && document.querySelector({json.dumps(ready)})")

    def click(self, selector: str) -> None:
        """Clicks the middle of an element with the mouse."""
        found = f"document.querySelector({json.dumps(selector)})"
        self.wait(found)
        x, y = self.evaluate(
            f"(() => {{ const e = {found}; e.scrollIntoView({{block: 'center'}});"
            " const r = e.getClientRects()[0];"
            " return [r.x + r.width / 2, r.y + r.height / 2]; })()"
        )
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def press(self, key: str, code: int) -> None:
        """Presses a key, such as Tab, whose Windows code is 9."""
        for kind in ("keyDown", "keyUp"):
            text = {"text": "\r"} if key == "Enter" and kind == "keyDown" else {}
            self.call(
                "Input.dispatchKeyEvent", type=kind, key=key, code=key,
                windowsVirtualKeyCode=code, **text,
            )  # fmt: skip

    def look(self, width: int, scheme: str) -> None:
        """Sets the width in pixels and the colour scheme, `light` or `dark`."""
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1,
            mobile=False,
        )  # fmt: skip
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.call("Emulation.setEmulatedMedia", features=features)

    def screenshot(self, most_height: int, scale: float = 1.0) -> bytes:
        """Returns the page as PNG, from its top to its end or so many pixels, made smaller."""
        width, height = self.evaluate("[innerWidth, document.body.offsetHeight]")
        height = min(height, most_height)
        clip = {"x": 0, "y": 0, "width": width, "height": height, "scale": scale}
        shot = self.call(
            "Page.captureScreenshot", format="png", clip=clip, captureBeyondViewport=True
        )
        return base64.b64decode(shot["data"])


@contextmanager
def browser(folder: Path) -> Iterator[Browser]:
    """Runs a browser with a profile of its own in a folder, and ends it."""
    to_read, send = os.pipe()
    receive, to_write = os.pipe()
    command = [
        "chromium", "--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe",
        "--hide-scrollbars", f"--user-data-dir={folder / 'profile'}",
    ]  # fmt: skip
    # Chromium's pipe has the descriptors 3 and 4. Dash knows no number over 9.
    moved = ["bash", "-c", f'exec "$@" 3<&{to_read} 4>&{to_write}', "bash", *command]
    process = subprocess.Popen(  # noqa: S603  # fixed arguments
        moved,
        env=os.environ | {"HOME": str(folder)},
        pass_fds=(to_read, to_write),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    os.close(to_read)
    os.close(to_write)
    try:
        yield Browser(send, receive)
    finally:
        process.terminate()
        process.wait(_SECONDS)
        os.close(send)
        os.close(receive)
