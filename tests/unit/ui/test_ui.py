"""The pages of `slipway ui`: who may see them, and that they show text as text."""

import hashlib
import re
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from starlette.testclient import TestClient

from slipway.cli.ui import command_words
from slipway.codes.code import Code
from slipway.errors import UserError
from slipway.operations.fleet import Fleet, FleetRow
from slipway.operations.logs import LogEvent
from slipway.ui import app as ui_app
from slipway.ui.app import make_app
from slipway.ui.looks import Looks
from tests.support.projects import LOCAL

TOKEN, PORT = "of-this-test", 8123
OWN = f"http://127.0.0.1:{PORT}"
EVIL = "<script>alert(1)</script>\"'&"
STATIC = Path(ui_app.__file__).parent / "static"
PARTS = {"/parts/fleet", "/parts/review", "/models/m/status", "/models/m/plan", "/models/m/log"}
DENIED = UserError.of(Code.LOOKUP_FAILED, f"denied {EVIL}", "Ask for the right.")


class FakeLooks(Looks):
    """Sees what a test lays down."""

    def __init__(self) -> None:
        super().__init__(Path(), "production")
        self.seen: dict[str, Callable[[], Any]] = {}
        self.asked: list[tuple[str, bytes]] = []

    def __getattribute__(self, name: str) -> Any:
        if name in ("fleet", "review", "status", "plan", "plots", "log"):
            return lambda *_: self.seen[name]()
        return super().__getattribute__(name)

    def ask(self, name: str, body: bytes) -> tuple[str, str]:
        self.asked.append((name, body))
        return EVIL, "answered"


@pytest.fixture
def looks():
    return FakeLooks()


def client(looks: Looks, **options: Any) -> TestClient:
    app = make_app(looks, command_words(), TOKEN, PORT)
    return TestClient(app, base_url=OWN, follow_redirects=False, **options)


@pytest.fixture
def browser(looks):
    """A browser that opened the address once."""
    found = client(looks)
    assert found.get(f"/?token={TOKEN}").status_code == 200
    return found


def test_only_a_browser_with_the_token_is_admitted(looks):
    stranger = client(looks)
    for path in ("/", "/static/style.css", "/models/m/log", "/?token=", "/?token=of-this-tes"):
        refused = stranger.get(path)
        assert refused.status_code == 403
        assert "Open the whole address that `slipway ui` printed." in refused.text
    admitted = stranger.get(f"/?token={TOKEN}")
    cookie = admitted.headers["set-cookie"]
    assert cookie.startswith(f"slipway-ui-{PORT}=")
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    assert TOKEN not in cookie
    assert 'content="0; url=/"' in admitted.text
    assert stranger.get("/").status_code == 200


@pytest.mark.parametrize(
    "host", ["evil.example", f"evil.example:{PORT}", "127.0.0.1:1", f"localhost:{PORT}", ""]
)
def test_another_host_is_refused_with_the_token_and_the_cookie(browser, host):
    for path in ("/", f"/?token={TOKEN}"):
        assert browser.get(path, headers={"host": host}).status_code == 403


def test_a_page_elsewhere_reads_and_sends_nothing(browser, looks):
    strange: list[dict[str, str]] = [
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"origin": f"http://localhost:{PORT}"},
        {"origin": OWN, "sec-fetch-site": "same-site"},
        {"sec-fetch-site": "cross-site"},
    ]
    for headers in strange:
        assert browser.get("/", headers=headers).status_code == 403
        sent = browser.post("/models/m/invoke", content="body={}", headers=headers)
        assert sent.status_code == 403
    # No origin at all, and a token in place of one.
    for path in ("/models/m/invoke", f"/models/m/invoke?token={TOKEN}"):
        assert browser.post(path, content="body={}").status_code == 403
    assert looks.asked == []
    # A link from elsewhere may bring the token.
    linked = {"sec-fetch-site": "cross-site"}
    assert browser.get(f"/?token={TOKEN}", headers=linked).status_code == 200


def test_a_request_is_sent_from_an_own_page_alone(browser, looks):
    body = '{"inputs": "ä&="}'
    form = {"content-type": "application/x-www-form-urlencoded"}
    own = form | {"origin": OWN, "sec-fetch-site": "same-origin"}
    found = browser.post("/models/m/invoke", content=f"body={quote(body)}", headers=own)
    assert looks.asked == [("m", body.encode())]
    assert "<script>" not in found.text
    assert "&lt;script&gt;" in found.text
    large = b"body=" + b"x" * (3 * 6_291_456)
    assert (
        "over 6,291,456 bytes" in browser.post("/models/m/invoke", content=large, headers=own).text
    )
    assert len(looks.asked) == 1


def test_no_page_has_a_script_or_a_style_of_its_own(browser):
    for path in ("/", "/review", "/models/m"):
        answer = browser.get(path)
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'; script-src 'self'; style-src 'self';" in policy
        assert "unsafe" not in policy
        assert not re.search(r"<style|\sstyle=|\son[a-z]+=|<script(?! src=\"/static/)", answer.text)
        assert not re.search(r"(src|href|action)=\"(https?:)?//", answer.text)
        assert answer.headers["x-content-type-options"] == "nosniff"
        for landmark in ("<header>", "<nav ", '<main id="main"', "<h1", '<html lang="en">'):
            assert landmark in answer.text


def test_hostile_names_lines_and_reasons_stay_text(browser, looks):
    row = FleetRow(EVIL, "production", "FAILED", is_trouble=True, alarms=(EVIL,))
    looks.seen["fleet"] = lambda: Fleet((row,), {"requests": f"AccessDenied {EVIL}"})
    line = LogEvent(datetime(2026, 11, 28, tzinfo=UTC), "group", EVIL, f"error {EVIL}\x1b[31m")
    looks.seen["log"] = lambda: [line]
    pages = [browser.get(path).text for path in ("/parts/fleet", "/models/m/log")]
    named = browser.get(f"/models/{quote('<script>')}").text
    assert "&lt;script&gt;</h1>" in named
    for page in (*pages, named):
        assert "<script>" not in page
        assert "&lt;script&gt;" in page
    assert "Not seen: requests: AccessDenied" in pages[0]
    assert 'scope="row"' in pages[0]
    assert 'scope="col"' in pages[0]
    assert '<p class="error">' in pages[1]


@pytest.mark.parametrize("path", sorted(PARTS))
def test_what_could_not_be_seen_is_said_with_its_remedy(browser, looks, path):
    def deny() -> None:
        raise DENIED

    looks.seen = dict.fromkeys(("fleet", "review", "status", "plan", "log"), deny)
    found = browser.get(path)
    assert found.status_code == 200
    assert "denied &lt;script&gt;" in found.text
    assert "Ask for the right." in found.text


def test_what_a_browser_has_is_not_sent_again(browser, looks):
    looks.seen["fleet"] = lambda: Fleet((FleetRow("m", "production", "in service"),), {})
    first = browser.get("/parts/fleet").text
    (seen,) = re.findall(r'name="seen" value="(\w+)"', first)
    again = browser.get(f"/parts/fleet?seen={seen}")
    assert (again.status_code, again.text) == (204, "")
    looks.seen["fleet"] = lambda: Fleet((FleetRow("m", "production", "changes"),), {})
    assert "changes" in browser.get(f"/parts/fleet?seen={seen}").text


def test_browsers_that_ask_at_once_look_once_and_keep_their_access(monkeypatch):
    looks, calls, begun = Looks(Path(), "production"), [], threading.Barrier(2)

    def look() -> int:
        calls.append(1)
        return len(calls)

    def ask() -> None:
        begun.wait(10)
        found.append(looks._once(look, "x", seconds=60))

    found: list[int] = []
    threads = [threading.Thread(target=ask) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert (found, calls) == ([1, 1], [1])
    running: dict[str, str | None] = {}
    monkeypatch.setattr("slipway.ui.looks.local_variables", lambda *_: dict(running))
    looks, urls = Looks(Path(), "local"), []
    for port in (1, 1, 2):
        running["AWS_ENDPOINT_URL"] = f"http://127.0.0.1:{port}"
        urls.append(looks._access(LOCAL))
    assert urls[0] is urls[1]
    assert [each.client("sts").meta.endpoint_url for each in urls[1:]] == [
        "http://127.0.0.1:1", "http://127.0.0.1:2",
    ]  # fmt: skip


def test_htmx_is_the_file_of_its_package():
    """dist/htmx.min.js of htmx.org 2.0.11 on npm, whose archive has the integrity
    sha512-Thx/WtpeOQqSrqBCw/A1cwGJGg4UrVa3+sW0GmrM3p4gJgO89ecH4qtbnyzDDWFvBTqjnIMCgELTNt636dtamA==
    """
    digest = hashlib.sha256((STATIC / "htmx.min.js").read_bytes()).hexdigest()
    assert digest == "d6fdc75f204e6bdefa99b69bf1e6d4ac69b8a364f77929f45c13476b4000f717"
    assert (STATIC / "htmx.LICENSE").read_text("utf-8").startswith("Zero-Clause BSD")
