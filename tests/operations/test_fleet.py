"""`slipway list`: every model of an environment, whatever state it is in."""

import io
import json
import re
from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from botocore.awsrequest import AWSResponse, HeadersDict

from slipway.access import Access
from slipway.codes.code import Code
from slipway.deployed.traffic import Traffic
from slipway.operations.fleet import Fleet, FleetRow, find_fleet
from slipway.operations.reviewing import review_deployed
from slipway.planning.bill import bill_of
from slipway.project import Project
from tests.support.accounts import connection_to, denying_access
from tests.support.clocks import MovableClock
from tests.support.projects import LOCAL, config_text, write_project
from tests.support.slipway_stack import MODEL, NAME, SlipwayStack, slipway_stack
from tests.support.stacks import model_tags
from tests.synth.assemblies import AUTOSCALING

TOPIC = {"Resources": {"Topic": {"Type": "AWS::SNS::Topic"}}}
# The foundation has such a parameter.
TAKEN = {"Name": "/slipway/local/artifact-key-arn", "Type": "String", "Value": "x"}
BROKEN = {"Resources": {"Key": {"Type": "AWS::SSM::Parameter", "Properties": TAKEN}}}


@pytest.fixture(scope="module")
def clock() -> MovableClock:
    return MovableClock()


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory, clock: MovableClock) -> Iterator[SlipwayStack]:
    folder = tmp_path_factory.mktemp("fleet")
    with slipway_stack(folder, time_scale=0.005, clock=clock) as stack:
        assert stack.create("ok", Tags=model_tags(MODEL)) == "CREATE_COMPLETE"
        for name, template in {"gone": TOPIC, "half": BROKEN}.items():
            stack.stacks.create(f"{name}-local", template, Tags=model_tags(name))
        # Of another environment, and of nobody.
        stack.stacks.create("gone-other", TOPIC, Tags=model_tags("half", "other"))
        stack.stacks.create("nobody", TOPIC)
        yield stack
        assert stack.delete() == "DELETE_COMPLETE"


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    texts = {
        MODEL: config_text(MODEL, AUTOSCALING),
        "later": config_text("later"),
        "half": "name: half\n",
    }
    root = tmp_path_factory.mktemp("project")
    return Project(write_project(root, texts, published=[MODEL, "later"]))


def rows(fleet: Fleet) -> dict[str, FleetRow]:
    return {row.model: row for row in fleet.rows}


def test_every_model_and_every_stack_has_a_row(
    stack: SlipwayStack, project: Project, clock: MovableClock
) -> None:
    for body in ("x", "x", "500"):
        stack.invoke_or_none(body)
    found = find_fleet(project, LOCAL, stack.access)
    assert found.unseen == {}
    listed = rows(found)
    assert list(listed) == [MODEL, "gone", "half", "later"]
    serving = listed[MODEL]
    assert (serving.state, serving.is_trouble, serving.has_file) == ("in service", False, True)
    assert serving.instances == "2 x ml.g4dn.xlarge"
    # Its weights are others than those of the files.
    assert (serving.serves_files, serving.at_maximum, serving.idle_days) == (False, False, None)
    # As many instances run as at creation.
    bill = bill_of(project.plan(MODEL, LOCAL))
    assert serving.usd_per_month == bill.total.expected == pytest.approx(1075.86, abs=1)
    assert serving.traffic is not None
    assert serving.traffic.request_count == 3
    assert serving.traffic.p99_milliseconds is not None
    assert listed["later"] == FleetRow("later", "local", "not deployed")
    gone = listed["gone"]
    assert (gone.state, gone.has_file, gone.is_trouble) == ("nothing serves", False, True)
    assert (listed["half"].state, listed["half"].has_file) == ("ROLLBACK_COMPLETE", True)


def test_an_endpoint_at_its_maximum_is_told(stack: SlipwayStack, project: Project) -> None:
    scaling = stack.stacks.client("application-autoscaling")
    target = {
        "ServiceNamespace": "sagemaker",
        "ResourceId": f"endpoint/{NAME}/variant/AllTraffic",
        "ScalableDimension": "sagemaker:variant:DesiredInstanceCount",
    }
    scaling.register_scalable_target(**target, MinCapacity=1, MaxCapacity=2)
    try:
        assert rows(find_fleet(project, LOCAL, stack.access))[MODEL].at_maximum
    finally:
        scaling.register_scalable_target(**target, MinCapacity=2, MaxCapacity=6)


def test_a_raised_alarm_is_trouble(stack: SlipwayStack, project: Project) -> None:
    cloudwatch = stack.stacks.client("cloudwatch")
    alarms = cloudwatch.describe_alarms(AlarmNamePrefix=f"{NAME}-AlarmsModel")["MetricAlarms"]
    (name,) = (alarm["AlarmName"] for alarm in alarms)
    for state, expected in (("ALARM", (name,)), ("OK", ())):
        cloudwatch.set_alarm_state(AlarmName=name, StateValue=state, StateReason="tried")
        row = rows(find_fleet(project, LOCAL, stack.access))[MODEL]
        assert (row.alarms, row.is_trouble) == (expected, bool(expected))


def test_a_live_review_knows_what_is_not_deployed_yet(
    stack: SlipwayStack, project: Project
) -> None:
    found = review_deployed(project, [MODEL, "half", "later"], stack.access, LOCAL)
    verdicts = {each.model: each.verdict for each in found.models}
    assert verdicts == {MODEL: "new fleet", "later": "new"}
    # It has no valid plan.
    assert {each.code for each in found.problems} == {Code.MISSING_FIELD}


def test_what_is_refused_is_named_and_the_rest_is_there(
    stack: SlipwayStack, project: Project
) -> None:
    url = stack.stacks.aws.connection.url
    for denied, unseen in {
        ("DescribeStacks",): {"stacks"},
        ("GetMetricData", "DescribeScalableTargets"): {"requests", "scaling"},
        ("DescribeEndpoint", "DescribeAlarms"): {"endpoints", "alarms"},
    }.items():
        found = find_fleet(project, LOCAL, denying_access(url, *denied))
        assert set(found.unseen) == unseen
        assert all("AccessDenied" in why for why in found.unseen.values())
        assert MODEL in rows(found)


class Throttling(Access):
    """Access whose calls are throttled at first, as AWS answers: botocore tries again."""

    calls: Counter[str]

    def client(self, service: str, config: Any = None) -> Any:
        client = super().client(service, config)

        def throttle(request: Any, event_name: str, **_: Any) -> AWSResponse | None:
            operation = event_name.rpartition(".")[2]
            self.calls[operation] += 1
            if operation not in ("DescribeEndpoint", "DescribeStacks") or self.calls[operation] > 1:
                return None
            body = b'{"__type": "ThrottlingException", "message": "Rate exceeded"}'
            if operation == "DescribeStacks":
                body = b"<E><Error><Code>Throttling</Code><Message>slow</Message></Error></E>"
            raw = RawResponse(body)
            return AWSResponse(request.url, 400, HeadersDict(), raw)

        client.meta.events.register("before-send", throttle)
        return client


class RawResponse(io.BytesIO):
    """A body as botocore reads it."""

    def stream(self) -> Iterator[bytes]:
        yield self.read()


def test_throttling_is_waited_out(stack: SlipwayStack, project: Project) -> None:
    access = Throttling(LOCAL.region, connection_to(stack.stacks.aws.connection.url).variables())
    access.calls = Counter()
    found = find_fleet(project, LOCAL, access)
    assert found.unseen == {}
    assert rows(found)[MODEL].state == "in service"
    # One for each model, and the one that was throttled.
    assert access.calls["DescribeEndpoint"] == len(found.rows) + 1
    assert access.calls["DescribeStacks"] == 2
    # Of the only endpoint.
    assert access.calls["DescribeEndpointConfig"] == access.calls["DescribeModel"] == 1


def test_the_dashboard_of_the_stack_shows_its_alarms(stack: SlipwayStack) -> None:
    cloudwatch = stack.stacks.client("cloudwatch")
    found = cloudwatch.get_dashboard(DashboardName=f"{NAME}-{LOCAL.region}")
    widgets = json.loads(found["DashboardBody"])["widgets"]
    shown = [each["properties"].get("annotations", {}).get("alarms", []) for each in widgets]
    alarms = cloudwatch.describe_alarms(AlarmNamePrefix=f"{NAME}-Alarms")["MetricAlarms"]
    assert {arn for arns in shown for arn in arns} == {alarm["AlarmArn"] for alarm in alarms}


def test_a_page_has_the_plots_and_what_is_wrong(
    stack: SlipwayStack,
    project: Project,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    slipway_command: Any,
) -> None:
    for body in ("x", "500"):
        stack.invoke_or_none(body)
    name = f"{NAME}-AlarmsModel"
    cloudwatch = stack.stacks.client("cloudwatch")
    (alarm,) = cloudwatch.describe_alarms(AlarmNamePrefix=name)["MetricAlarms"]
    cloudwatch.set_alarm_state(
        AlarmName=alarm["AlarmName"], StateValue="ALARM", StateReason="<slow>"
    )
    monkeypatch.chdir(project.root)
    monkeypatch.setattr("slipway.access.open_access", lambda *_: stack.access)
    file = tmp_path / "page.html"
    try:
        code, text, errors = slipway_command("dashboard", MODEL, "--html", str(file))
    finally:
        cloudwatch.set_alarm_state(
            AlarmName=alarm["AlarmName"], StateValue="OK", StateReason="tried"
        )
    assert (code, text, errors) == (0, f"{file}: {MODEL} in local, TROUBLE\n", "")
    page = file.read_text("utf-8")
    assert f'<td class="trouble">ALARM {alarm["AlarmName"]}: &lt;slow&gt;</td>' in page
    # The requests of this file's tests, of which one a minute fails at most.
    titles = re.findall("<title id=.*>(.*)</title>", page)
    assert titles == [
        *("Requests, a minute", "Server errors, a minute"),
        *("Time to answer, milliseconds", "Instances, count"),
    ]
    descriptions = re.findall("<desc id=.*>(.*)</desc>", page)
    assert len(descriptions) == 4
    assert not any("no data" in each for each in descriptions)
    assert descriptions[3].endswith("instances: 2 to 2, the latest 2.")
    # A browser loads nothing, and runs nothing.
    assert not re.search(r"<script|<link|<img|\bsrc=|\bhref=|url\(|@import|\bon[a-z]+=", page)
    code, _, errors = slipway_command("dashboard", "later", "--html", str(file))
    assert (code, "later" in errors) == (1, True)
    assert file.read_text("utf-8") == page


def test_what_is_not_seen_is_not_called_missing(stack: SlipwayStack, project: Project) -> None:
    for denied, later in {
        ("DescribeEndpoint",): "not deployed",  # it has no stack
        ("DescribeEndpoint", "DescribeStacks"): "not seen",
    }.items():
        access = denying_access(stack.stacks.aws.connection.url, *denied)
        listed = rows(find_fleet(project, LOCAL, access))
        assert (listed[MODEL].state, listed[MODEL].is_trouble) == ("not seen", False)
        assert listed["later"].state == later


def test_days_without_a_request_are_counted(
    stack: SlipwayStack, project: Project, clock: MovableClock
) -> None:
    """The last test: nothing moves the clock back."""
    clock.move(timedelta(days=3, hours=1).total_seconds())
    row = rows(find_fleet(project, LOCAL, stack.access))[MODEL]
    assert row.idle_days == 3
    assert row.traffic == Traffic(0, 0, None, None)
