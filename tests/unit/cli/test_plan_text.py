"""How `slipway plan`, `list`, `status` and `logs` write for people what they know."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from botocore.exceptions import ClientError

from slipway.cli.list_ import as_table
from slipway.cli.plan_text import plan_rows
from slipway.cli.status import print_status, status_rows
from slipway.deployed.fields import running_instances
from slipway.deployed.served import Served
from slipway.deployed.traffic import Traffic
from slipway.operations.deployment import Deployment
from slipway.operations.fleet import IN_SERVICE, FleetRow
from slipway.operations.log_text import readable
from slipway.operations.logs import find_groups
from slipway.operations.status import Status
from slipway.operations.status.report import EndpointStatus, Variant
from tests.support.pages import ROOT
from tests.support.plans import plan_for
from tests.support.projects import PRODUCTION, model_config

BOUNDS: dict[str, Any] = {"min_instance_count": 1, "max_instance_count": 6}


def told(**sections: Any) -> dict[str, str]:
    """Returns the rows of a config in production; of equal labels the last one."""
    return dict(plan_rows(plan_for(model_config(**sections), PRODUCTION)))


@pytest.mark.parametrize("configuration", ["file", "environment"])
def test_settings_are_properties_of_a_package_or_variables(configuration: str):
    serving = {"container": "lmi", "framework": "djl-lmi", "version": "0.36.0", "dtype": "fp16"}
    config = model_config(
        serving=serving | {"configuration": configuration},
        artifacts={"release": None, "weights": {"source": "s3", "uri": "s3://my-models/qwen2/"}},
        endpoint={
            "instances": ["ml.g5.xlarge"],
            "network_isolation": configuration == "environment",
        },
    )
    lines = [list(row) for row in plan_rows(plan_for(config, PRODUCTION))]
    labels = [label.split()[0] for label, _ in lines]
    packaged = configuration == "file"
    assert labels.count("artifact") == 1
    # Beside the package the container copies them; else they are the artifact.
    assert labels.count("weights") == packaged
    assert (["property", "option.dtype=fp16"] in lines) is packaged
    assert (["env OPTION_DTYPE", "fp16"] in lines) is not packaged
    assert ("property" in labels) is packaged


@pytest.mark.parametrize(
    ("artifacts", "key"),
    [
        ({}, "alias/slipway-production/tiny"),
        (
            {"key_arn": "arn:aws:kms:eu-west-1:210987654321:key/0a"},
            "arn:aws:kms:eu-west-1:210987654321:key/0a",
        ),
    ],
)
def test_an_isolated_model_shows_its_prefix_and_key(artifacts: dict[str, str], key: str):
    lines = told(artifacts={"isolated": True, **artifacts})
    assert lines["isolated"] == f"only this model's role reads models/tiny/, with the key {key}"
    assert "isolated" not in told()


@pytest.mark.parametrize(
    ("target", "scaling", "step"),
    [
        ("target_invocations_per_instance_per_minute", "600 invocations per minute", "900"),
        ("target_concurrent_requests_per_instance", "8 concurrent requests", "12"),
        ("target_gpu_utilization_percent", "60 % use of the GPUs", "90"),
    ],
)
def test_the_target_and_the_steps_are_told(target: str, scaling: str, step: str):
    value, _, unit = scaling.partition(" ")
    steps = [{"from_times_target": 1.5, "add_instances": 4}]
    lines = told(autoscaling=BOUNDS | {target: int(value), "steps": steps})
    assert lines["autoscaling"] == f"1 to 6 instances at {scaling} each"
    assert lines["step"] == f"4 instances more from {step} {unit} each"


def test_protection_a_reservation_a_role_and_metrics_are_told():
    arn = "arn:aws:sagemaker:eu-west-1:210987654321:training-plan/search"
    lines = told(endpoint={"capacity_reservation_arn": arn, "termination_protection": True})
    assert lines["reservation"] == f"only in the capacity of {arn}"
    assert lines["protection"] == "the stack cannot be deleted until termination_protection is off"
    role = "arn:aws:iam::210987654321:role/serving"
    metrics = {"enhanced": True, "publish_frequency_seconds": 10}
    lines = told(endpoint={"execution_role_arn": role, "metrics": metrics})
    assert lines["role"] == (
        f"{role}, whose rights `slipway iam tiny --execution-role --env production` prints"
    )
    assert lines["metrics"] == (
        "of all instances and of each, every 10 s, with detailed observability"
    )


ROWS = [
    FleetRow(
        "gpt2-autocomplete", "production", IN_SERVICE, serves_files=True,
        instances="2 x ml.g4dn.xlarge", traffic=Traffic(48_210, 3, 14.2, 40.9),
        usd_per_month=1074.56,
    ),
    FleetRow(
        "flan-t5-xxl", "production", IN_SERVICE, serves_files=False,
        instances="1 x ml.g5.12xlarge", traffic=Traffic(0, 0, None, None), usd_per_month=5175.7,
        idle_days=9,
    ),
    FleetRow(
        "old-ranker", "production", IN_SERVICE, instances="1 x ml.g4dn.xlarge",
        traffic=Traffic(12, 0, 20.0, 33.0), usd_per_month=537.28, has_file=False,
    ),
]  # fmt: skip


def test_the_page_shows_the_table_and_columns_without_a_value_are_left_out() -> None:
    page = (ROOT / "docs" / "commands.md").read_text("utf-8")
    assert f"```text\n{as_table(ROWS)}\n```" in page
    row = FleetRow("chat", "eu", IN_SERVICE, usd_known_per_month=1198.7)
    assert as_table([row]).endswith("in service  1,199 + unknown")
    assert as_table([FleetRow("later", "local", "not deployed")]) == (
        "model  environment  state\nlater  local        not deployed"
    )


PAGE = "https://docs.aws.amazon.com/sagemaker/latest/dg/async-inference-create-invoke-update.html"

COMMAND = "aws cloudformation continue-update-rollback --stack-name tiny-local"


def status_with(**known: Any) -> Status:
    unknown = dict.fromkeys(("planned", "endpoint", "deployment", "declared"))
    nothing: dict[str, Any] = dict.fromkeys(("differences", "alarms", "trips", "log_lines"), ())
    return Status(log_group="/aws/sagemaker/Endpoints/tiny", **(unknown | nothing | known))


def test_a_pool_tells_which_types_run_and_no_address_is_broken_over_lines(
    capsys: pytest.CaptureFixture[str],
) -> None:
    pool = {"ml.g4dn.xlarge": 0, "ml.g5.xlarge": 1}
    described = [{"InstanceType": each, "CurrentInstanceCount": n} for each, n in pool.items()]
    running = running_instances({"InstancePools": described})
    endpoint = EndpointStatus(
        name="tiny",
        status="InService",
        changed=datetime(2026, 11, 26, tzinfo=UTC),
        failure_reason=None,
        served=Served("config"),
        variants=(Variant("AllTraffic", tuple(pool), 1, 1, None, None, running=running),),
        answers=None,
        component=None,
    )
    rows = status_rows(status_with(endpoint=endpoint), None, None)
    assert ("running", "1 x ml.g5.xlarge") in rows
    assert not any("0 x" in text for _, text in rows)
    failures = (f"Endpoint: {PAGE} says why",)
    state, at = "UPDATE_ROLLBACK_FAILED", datetime(2026, 11, 26, tzinfo=UTC)
    deployment = Deployment("tiny-local", state, at, None, failures, False, ("Endpoint",))
    print_status(status_with(deployment=deployment), None)
    lines = capsys.readouterr().out.splitlines()
    for whole in (PAGE, f"`{COMMAND}`"):
        assert any(whole in line for line in lines)


def test_a_terminal_gets_no_control_character_of_a_log():
    # A title, a screen cleared, the same in eight bits, and a line that hides the one before it.
    text = "\x1b[1;31mred\x1b[0m \x1b]0;title\x07 \x1b[2J \x9b2J a\rb\tc"
    shown = r"red \x1b]0;title\x07 \x1b[2J \x9b2J a\rb" + "\tc"
    assert readable(text) == shown
    line = json.dumps({"level": "error", "event": "failed", "message": text, "id": "\x1b[2J"})
    assert readable(line) == rf"error failed: {shown} id=\x1b[2J"
    for other in ('["\\u001b"]', '"\\u001b"', "3", "null"):
        assert readable(other) == other


def test_no_length_is_longer_than_logs_are_kept(tmp_path, monkeypatch, slipway_command):
    monkeypatch.chdir(tmp_path)
    for length in ("999999d", "3654d", "100000h", "-1m", "1", "m", "1.5h", "¹m"):
        code, _, error = slipway_command("logs", "tiny", f"--since={length}")
        told = f"`--since {length}` is no length of time of at most 3653 days [SW409]"
        assert (code, told in error) == (1, True), error
    # A right one goes on to the project, which is not there.
    for length in ("0m", "3653d", "90s"):
        error = slipway_command.refused("logs", "tiny", f"--since={length}")
        assert "no length" not in error
        assert "no Slipway project here" in error


class Groups:
    """CloudWatch Logs with one group; those of other kinds may not be read."""

    def __init__(self, *names: str) -> None:
        self._names = names

    def filter_log_events(self, *, logGroupName: str, limit: int) -> dict[str, Any]:  # noqa: N803
        if logGroupName not in self._names:
            error = {"Code": "AccessDeniedException", "Message": f"not yours, {limit}"}
            raise ClientError({"Error": error}, "FilterLogEvents")
        return {"events": []}


def test_groups_of_another_mode_may_be_denied():
    name = "/aws/sagemaker/Endpoints/tiny-local"
    assert find_groups(Groups(name), "tiny-local") == [name]
    with pytest.raises(ClientError, match="AccessDenied"):
        find_groups(Groups(), "tiny-local")
