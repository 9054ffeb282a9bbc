"""`slipway ui` over an endpoint: its parts, a refused call, and an account that goes and comes."""

import re
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from slipway.access import Access, open_access
from slipway.cli.ui import command_words
from slipway.config.environments import Environment
from slipway.deployed.traffic import account_time
from slipway.errors import UserError
from slipway.ui.app import make_app
from slipway.ui.looks import Looks
from slipway.ui.server import serve
from tests.support.accounts import access_to, denying_access
from tests.support.projects import LOCAL, config_text, write_project
from tests.support.recorded_calls import RecordedCalls
from tests.support.slipway_stack import MODEL, NAME, SlipwayStack
from tests.support.stacks import model_tags
from tests.support.starts import count_start

TOKEN, PORT = "of-this-test", 8123
OWN = f"http://127.0.0.1:{PORT}"


@pytest.fixture(scope="module")
def stack(stack: SlipwayStack) -> SlipwayStack:
    assert stack.create("ok", Tags=model_tags(MODEL)) == "CREATE_COMPLETE"
    return stack


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    texts = {MODEL: config_text(MODEL), "later": config_text("later")}
    return write_project(tmp_path_factory.mktemp("project"), texts, published=[MODEL])


def browser(looks: Looks) -> TestClient:
    found = TestClient(make_app(looks, command_words(), TOKEN, PORT), base_url=OWN)
    assert found.get(f"/?token={TOKEN}").status_code == 200
    return found


def looks_at(root: Path, access: Access) -> Looks:
    return Looks(root, "local", lambda _environment, _root: access)


def test_the_parts_have_what_the_commands_print(stack: SlipwayStack, root: Path) -> None:
    access = access_to(stack.stacks.aws.connection.url)
    calls = RecordedCalls(access, f"{LOCAL.region}:{LOCAL.account}")
    looks = looks_at(root, access)
    pages = browser(looks)
    own = {"origin": OWN, "content-type": "application/x-www-form-urlencoded"}
    answer = pages.post(f"/models/{MODEL}/invoke", content="body=%22x%22", headers=own)
    assert "AllTraffic answered in" in answer.text
    wrong = pages.post(f"/models/{MODEL}/invoke", content="body={", headers=own)
    assert "the request is not JSON" in wrong.text
    fleet = pages.get("/parts/fleet").text
    assert f'href="/models/{MODEL}"' in fleet
    assert "not deployed" in fleet
    # Two browsers see the same.
    assert browser(looks).get("/parts/fleet").text == fleet
    status = pages.get(f"/models/{MODEL}/status").text
    assert "1 request, 0 with 5XX" in status
    assert f"<code>{NAME}-AlarmsModelLatency" in status
    assert "ml.g4dn.xlarge" in pages.get(f"/models/{MODEL}/plan").text
    assert pages.get(f"/models/{MODEL}/plots").text.count("<svg") == 4
    # Other weights than those of the files.
    review = pages.get("/parts/review").text
    assert "in place" in review or "new fleet" in review
    assert "later" not in review
    for path in (f"/models/{MODEL}/log", "/plots.css", "/static/htmx.min.js"):
        assert pages.get(path).status_code == 200
    assert "there is no stack and no endpoint later-local" in pages.get("/models/later/status").text
    made = {action.partition(":")[2] for action, _ in calls.made}
    written = {each for each in made if not each.startswith(("Describe", "Filter", "Get", "List"))}
    assert written == {"InvokeEndpoint"}


def test_the_log_goes_on_where_it_was(stack: SlipwayStack, root: Path) -> None:
    pages = browser(looks_at(root, stack.access))
    logs = stack.stacks.client("logs")
    group = f"/aws/sagemaker/Endpoints/{NAME}"
    at = int(account_time(stack.access.client("sts")).timestamp() * 1000)
    logs.create_log_stream(logGroupName=group, logStreamName="AllTraffic/i-1")
    looks = looks_at(root, stack.access)
    texts = []
    for number in range(3):
        event = {"timestamp": at + 1000 * number, "message": f"line <{number}>"}
        logs.put_log_events(logGroupName=group, logStreamName="AllTraffic/i-1", logEvents=[event])
        looks._shared.clear()
        texts = [line.text for line in looks.log(MODEL) if line.text.startswith("line")]
    assert texts == ["line <0>", "line <1>", "line <2>"]
    assert "line &lt;2&gt;" in pages.get(f"/models/{MODEL}/log").text


def test_what_the_account_refuses_is_named_and_the_rest_is_there(
    stack: SlipwayStack, root: Path
) -> None:
    url = stack.stacks.aws.connection.url
    pages = browser(looks_at(root, denying_access(url, "GetMetricData", "DescribeAlarms")))
    fleet = pages.get("/parts/fleet").text
    for what in ("requests", "alarms"):
        assert re.search(f"Not seen: {what}: .*AccessDenied.*not yours", fleet)
    assert "in service" in fleet
    status = pages.get(f"/models/{MODEL}/status").text
    assert "Use credentials that may make this call" in status


def test_an_embedded_aws_that_stops_is_told_and_found_again(
    stack: SlipwayStack, root: Path
) -> None:
    gone = access_to("http://127.0.0.1:9")
    now: list[Access | None] = [stack.access]

    def opening(environment: Environment, folder: Path) -> Access:
        # None: as it is where none runs for the project.
        return now[0] or open_access(environment, folder)

    looks = Looks(root, "local", opening)
    pages = browser(looks)
    for access, words in (
        (stack.access, "in service"),
        (gone, "Could not connect to the endpoint URL"),
        (None, "the embedded AWS is not running"),
        (stack.access, "in service"),
    ):
        now[0] = access
        looks._shared.clear()
        found = pages.get("/parts/fleet")
        assert found.status_code == 200
        assert words in found.text


def test_a_deployment_that_was_undone_is_told_with_its_log(stack: SlipwayStack, root: Path) -> None:
    assert stack.update("dead") == "UPDATE_ROLLBACK_COMPLETE"
    pages = browser(looks_at(root, stack.access))
    assert (
        '<span class="mark">look at it</span> UPDATE_ROLLBACK_COMPLETE'
        in pages.get("/parts/fleet").text
    )
    status = pages.get(f"/models/{MODEL}/status").text
    assert '<span class="mark trouble">TROUBLE</span> the last deployment failed' in status
    told = status.partition("<h3>Last deployment</h3>")[2].partition("</ul>")[0]
    assert "did not pass the ping health check" in told
    assert "dead" in pages.get(f"/models/{MODEL}/log").text


def test_the_command_prints_an_address_and_ends_with_ctrl_c(root: Path) -> None:
    command = [str(Path(sys.executable).with_name("slipway")), "ui", "--no-open"]
    count_start("python")
    with subprocess.Popen(command, cwd=root, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert "keep it secret" in process.stdout.readline()
            address = process.stdout.readline().strip()
            port = int(re.fullmatch(r"http://127\.0\.0\.1:(\d+)/\?token=\S{40,}", address)[1])  # type: ignore[index]
            with urllib.request.urlopen(address, timeout=30) as page:  # noqa: S310
                assert "Go on to Slipway" in page.read().decode()
            with pytest.raises(urllib.error.HTTPError, match="403"):
                urllib.request.urlopen(address.partition("?")[0], timeout=30)  # noqa: S310
            with pytest.raises(UserError, match=f"`slipway ui` cannot listen on port {port}: "):
                serve(Looks(root, "local"), command_words(), port, print, is_opened=False)
        finally:
            process.send_signal(signal.SIGINT)
        assert process.wait(30) == 0
