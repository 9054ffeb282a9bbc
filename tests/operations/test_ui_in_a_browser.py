"""`slipway ui` in Chromium: the way to a model, its log and an answer, with mouse and keys."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import uvicorn

from slipway.access import Access, local_variables
from slipway.cli.ui import command_words
from slipway.config.environments import Environment
from slipway.ui.app import make_app
from slipway.ui.looks import Looks
from slipway.ui.server import listening
from tests.support.projects import config_text, write_project
from tests.support.slipway_stack import MODEL, NAME, SlipwayStack
from tests.support.stacks import model_tags
from tests.support.waiting import eventually
from tools.browser import Browser, browser

pytestmark = [pytest.mark.browser, pytest.mark.timeout(240)]

TOKEN = "of-this-test"  # noqa: S105  # nobody else's
# The page moves sideways if anything is wider than the window.
OVERFLOW = "document.documentElement.scrollWidth - innerWidth"
EVIL = "<img src=x onerror=\"document.title='evil'\">"
UNNAMED = """
[...document.querySelectorAll("a, button, textarea, section, svg, table, [tabindex='0']")].filter(
  (each) => !(each.innerText || each.ariaLabel || each.labels?.length
    || each.getAttribute("aria-labelledby"))
).length
"""


class Account:
    """What the pages see: an account, or none."""

    def __init__(self, access: Access) -> None:
        self.access, self.is_gone = access, False

    def open(self, environment: Environment, root: Path) -> Access:
        if self.is_gone:
            local_variables(root, environment.region)  # none runs there
        return self.access


@pytest.fixture(scope="module")
def account(stack: SlipwayStack) -> Account:
    assert stack.create("ok", Tags=model_tags(MODEL)) == "CREATE_COMPLETE"
    stack.invoke()
    return Account(stack.access)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    texts = {MODEL: config_text(MODEL), "later": config_text("later")}
    return write_project(tmp_path_factory.mktemp("project"), texts, published=[MODEL])


@contextmanager
def serving(account: Account, root: Path) -> Iterator[tuple[str, uvicorn.Server]]:
    """Serves the pages from a thread; gives their address, and what ends it."""
    with listening(0) as listener:
        port = listener.getsockname()[1]
        app = make_app(Looks(root, "local", account.open), command_words(), TOKEN, port)
        config = uvicorn.Config(
            app, log_level="warning", lifespan="off", ws="none", timeout_graceful_shutdown=1
        )
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, args=([listener],))
        thread.start()
        try:
            eventually(lambda: server.started)
            yield f"http://127.0.0.1:{port}/?token={TOKEN}", server
        finally:
            # Without this a failure would leave a thread that Python waits for at its end.
            server.should_exit = True
            thread.join(30)


@pytest.fixture(scope="module")
def address(account: Account, root: Path) -> Iterator[str]:
    with serving(account, root) as (address, _):
        yield address


@pytest.fixture(scope="module")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with browser(tmp_path_factory.mktemp("browser")) as started:
        yield started


@pytest.fixture
def page(chromium: Browser) -> Browser:
    """An empty page, of which nothing was said yet."""
    chromium.open("about:blank")
    chromium.wait("location.href === 'about:blank'")
    chromium.look(1400, "light")
    chromium.events.clear()
    return chromium


def complaints(page: Browser) -> list[str]:
    """What Chromium had to say of scripts, styles and answers."""
    page.evaluate("1")
    told = [
        each
        for each in page.events
        if each["method"]
        in ("Log.entryAdded", "Runtime.exceptionThrown", "Runtime.consoleAPICalled")
    ]
    return [str(each["params"]) for each in told]


def test_from_the_fleet_to_an_answer_by_mouse(page: Browser, address: str) -> None:
    page.open(address)
    page.wait("document.querySelector('.fleet')")
    assert page.evaluate("location.href").endswith("/")
    page.click(f"#model-{MODEL}")
    page.wait(
        "document.querySelectorAll('.plot').length === 4 && document.querySelector('#plan th')"
    )
    page.wait("document.querySelector('#status').innerText.includes('1 request')")
    page.click("form button")
    page.wait("document.querySelector('#answer').innerText.includes('AllTraffic answered in')")
    # The status follows by itself, and says so.
    page.wait("document.querySelector('#status').innerText.includes('2 requests')")
    assert page.evaluate("document.querySelector('#news').innerText").startswith("Changed: Status")
    assert page.evaluate("document.querySelector('#body').value") == '{"inputs": "The"}'
    page.evaluate("document.querySelector('#body').value = '{'")
    page.click("form button")
    page.wait("document.querySelector('#answer').innerText.includes('the request is not JSON')")
    page.click("nav a[href='/review']")
    page.wait("document.querySelector('#review h2')")
    assert page.evaluate("document.querySelector('#review h2').innerText") == MODEL
    assert complaints(page) == []


def test_keys_alone_reach_a_model(page: Browser, address: str) -> None:
    page.open(address)
    page.wait("document.querySelector('.fleet')")
    for _ in range(10):
        page.press("Tab", 9)
        if page.evaluate("document.activeElement.id") == f"model-{MODEL}":
            break
        style = "getComputedStyle(document.activeElement)"
        assert page.evaluate(f"{style}.outlineStyle") == "solid"
    page.press("Enter", 13)
    page.wait(f"location.pathname === '/models/{MODEL}' && document.querySelector('.verdicts')")


def test_no_width_and_no_scheme_needs_to_be_scrolled_sideways(page: Browser, address: str) -> None:
    page.open(address)
    page.wait("document.querySelector('.fleet')")
    grounds = set()
    for path, ready in (
        ("/", ".fleet"), ("/review", "#review h2"), (f"/models/{MODEL}", "#plan table"),
    ):  # fmt: skip
        page.go(path, ready)
        for width in (1400, 500):
            for scheme in ("light", "dark"):
                page.look(width, scheme)
                assert page.evaluate(OVERFLOW) <= 0, (path, width)
                grounds.add(page.evaluate("getComputedStyle(document.body).backgroundColor"))
        assert page.evaluate(UNNAMED) == 0, path
    assert len(grounds) == 2


def test_an_account_that_stops_is_told_and_found_again(
    page: Browser, address: str, account: Account
) -> None:
    page.open(address)
    page.wait("document.querySelector('.fleet')")
    account.is_gone = True
    page.wait(
        "document.querySelector('#fleet').innerText.includes('the embedded AWS is not running')"
    )
    account.is_gone = False
    page.wait("document.querySelector('.fleet')")


def test_the_end_of_the_command_is_told(page: Browser, account: Account, root: Path) -> None:
    with serving(account, root) as (address, server):
        page.open(address)
        page.wait("document.querySelector('.fleet')")
        server.should_exit = True
        page.wait("document.querySelector('#gone').innerText.includes('`slipway ui` has ended')")


def test_a_hostile_line_of_a_log_is_text(page: Browser, address: str, account: Account) -> None:
    logs = account.access.client("logs")
    group = f"/aws/sagemaker/Endpoints/{NAME}"
    page.open(address)
    page.click(f"#model-{MODEL}")
    page.wait("document.querySelector('.verdicts')")
    stream = logs.describe_log_streams(logGroupName=group)["logStreams"][0]["logStreamName"]
    events = logs.get_log_events(logGroupName=group, logStreamName=stream)["events"]
    event = {"timestamp": events[-1]["timestamp"], "message": f"error {EVIL}"}
    logs.put_log_events(logGroupName=group, logStreamName=stream, logEvents=[event])
    page.wait(
        "[...document.querySelectorAll('.log .error')]"
        ".some((each) => each.innerText.includes('<img src=x'))"
    )
    assert page.evaluate("document.title").startswith(MODEL)
    assert page.evaluate("document.querySelector('.log img')") is None
