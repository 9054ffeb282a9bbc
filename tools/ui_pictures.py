"""Photographs the pages of `slipway ui` for the documentation.

`python -m tools.ui_pictures` deploys a model on an embedded AWS of its own, lets it answer for some
minutes of the account's time, and takes the pictures in Chromium. It takes about two minutes.
"""

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import demo
from slipway.embedded_aws import control
from tools.browser import Browser, browser
from tools.pictures import FOLDER

_MODEL: Final = demo.MODEL
# The page, what has to be there, its colours and its width in pixels.
_PICTURES: Final = (
    ("fleet", "/", ".fleet .mark", "light", 1400),
    ("fleet", "/", ".fleet .mark", "dark", 500),
    ("model", f"/models/{_MODEL}", ".plot ~ .plot ~ .plot", "light", 500),
    ("model", f"/models/{_MODEL}", ".plot ~ .plot ~ .plot", "dark", 1400),
    ("review", "/review", "#review h2", "light", 1400),
    ("review", "/review", "#review h2", "dark", 500),
)
# Height in pixels, and how much smaller the picture is.
_MOST_PIXELS: Final = {1400: (1000, 0.7), 500: (1200, 0.8)}
_MINUTES: Final = 24


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="slipway-ui-") as folder:
        project = Path(folder) / "project"
        project.mkdir()
        demo.copy_project(project)
        try:
            _prepare(project)
            with _pages(project) as address, browser(Path(folder)) as page:
                page.open(address)
                page.wait("document.querySelector('.fleet')")
                for picture in _PICTURES:
                    _take(page, *picture)
        finally:
            control.stop(project)


def _prepare(project: Path) -> None:
    """Deploys the model with a threshold that it cannot keep, asks it, and changes its file."""
    config = project / "model_configs" / f"{_MODEL}.yaml"
    _replace(config, "model_latency_p99_milliseconds: 600", "model_latency_p99_milliseconds: 10")
    steps = demo.Demo(project)
    steps.shell("slipway", "local", "start", "--port", "0")
    steps.use_embedded_aws()
    steps.shell(*demo.CDK, "bootstrap", "--quiet")
    steps.shell(*demo.CDK, "deploy", "foundation", "--require-approval", "never", show=False)
    steps.shell("slipway", "publish", _MODEL)
    steps.deploy()
    for minute in range(_MINUTES):
        for number in range(2 + minute % 5):
            steps.invoke(demo.PROMPTS[number % len(demo.PROMPTS)])
        steps.shell("slipway", "local", "pass-minutes", "1", show=False)
    _replace(config, "max_instance_count: 4", "max_instance_count: 8")


def _replace(path: Path, old: str, new: str) -> None:
    text = path.read_text("utf-8")
    if old not in text:
        raise ValueError(f"{path.name} does not have {old!r}")
    path.write_text(text.replace(old, new), "utf-8")


@contextmanager
def _pages(project: Path) -> Iterator[str]:
    command = [str(Path(sys.executable).with_name("slipway")), "ui", "--no-open"]
    with subprocess.Popen(  # noqa: S603  # fixed arguments
        command, cwd=project, stdout=subprocess.PIPE, text=True
    ) as process:
        if process.stdout is None:
            raise RuntimeError("a pipe was asked for")
        try:
            process.stdout.readline()
            yield process.stdout.readline().strip()
        finally:
            process.terminate()


def _take(page: Browser, name: str, path: str, ready: str, scheme: str, width: int) -> None:
    page.look(width, scheme)
    page.go(path, ready)
    page.wait("!document.body.innerText.includes('Looking')")
    picture = page.screenshot(*_MOST_PIXELS[width])
    (FOLDER / f"ui-{name}-{scheme}-{width}.png").write_bytes(picture)


if __name__ == "__main__":
    main()
