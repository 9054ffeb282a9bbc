"""Lives of one model and of two with the real CDK CLI, s5cmd and boto3."""

import json

import pytest

from demo import ROOT
from tests.support.assemblies import changed_copy
from tests.support.workbench import LATEST, MODEL, SHIPPED, Workbench

pytestmark = [pytest.mark.cdk, pytest.mark.timeout(900)]

ENDPOINT = f"{MODEL}-local"


def test_published_deployed_changed_and_destroyed(account):
    # The workbench published its copy; a lock that had to change was stale in the repository.
    lock = account.project / "model_configs" / f"{MODEL}.lock.json"
    committed = (ROOT / "model_configs" / f"{MODEL}.lock.json").read_bytes()
    assert lock.read_bytes() == committed
    assert account.must("slipway", "preflight", MODEL).count("ok  ") == 4

    # The assembly that the foundation was deployed from has the model, too.
    account.deploy_from(SHIPPED, MODEL)
    check_the_answer(account)
    assert len(account.serving_processes()) == 1
    found = account.run("slipway", "leftovers", MODEL)
    assert found.returncode == 3
    kinds = {line.partition(":")[0] for line in found.stdout.splitlines()}
    assert kinds == {
        "alarm",
        "endpoint",
        "endpoint config",
        "log group",
        "model",
        "scalable target",
        "stack",
    }

    again = json.loads(account.must("slipway", "publish", MODEL, "--json"))
    assert (again["uploaded_bytes"], again["lock_changed"]) == (0, False)
    assert lock.read_bytes() == committed

    check_a_change(account)

    # What is destroyed is the stack: the assembly of the change says which it is.
    account.destroy_from(LATEST, MODEL)
    assert account.stack_status(ENDPOINT) is None
    assert account.must("slipway", "leftovers", MODEL).startswith("Nothing is left of")
    assert account.serving_processes() == []
    assert account.client("sagemaker").list_models()["Models"] == []
    assert account.client("cloudwatch").describe_alarms()["MetricAlarms"] == []
    buckets = [item["Name"] for item in account.client("s3").list_buckets()["Buckets"]]
    assert "slipway-local-123456789012-us-east-1" in buckets
    assert lock.is_file()


def check_the_answer(account: Workbench) -> None:
    response = account.client("sagemaker-runtime").invoke_endpoint(
        EndpointName=ENDPOINT,
        ContentType="application/json",
        Body=json.dumps({"inputs": "The Amazon Resource Name (ARN)"}),
    )
    (answer,) = json.load(response["Body"])
    assert answer["generated_text"].strip().startswith("of ")
    assert response["InvokedProductionVariant"] == "AllTraffic"


def check_a_change(account: Workbench) -> None:
    """A change is reviewed, and what was reviewed is deployed."""
    config = account.config(MODEL)
    original = config.read_text("utf-8")
    config.write_text(original.replace("max_instance_count: 4", "max_instance_count: 8"))
    try:
        diff = account.must("cdk", "diff", MODEL, "-c", f"models={MODEL}", "--no-color")
    finally:
        config.write_text(original, "utf-8")
    assert "[~] AWS::ApplicationAutoScaling::ScalableTarget" in diff
    assert "[-] 4" in diff
    assert "[+] 8" in diff
    assert "AWS::SageMaker::Endpoint " not in diff
    account.deploy_from(LATEST, MODEL)
    targets = account.client("application-autoscaling").describe_scalable_targets(
        ServiceNamespace="sagemaker"
    )["ScalableTargets"]
    assert [target["MaxCapacity"] for target in targets] == [8]


@pytest.mark.size("all")
def test_two_models_are_deployed_twice_in_a_row_then_at_once(account):
    account.add_model("second")
    try:
        config = account.config("second")
        text = config.read_text("utf-8")
        config.write_text(text.replace("alarms:\n", "alarms:\n  evaluation_periods_minutes: 3\n"))
        account.must(
            "cdk", "deploy", "--all", "-c", f"models={MODEL},second",
            "--output", "cdk.out.both", "--require-approval", "never",
        )  # fmt: skip
        assembly = changed_copy(
            account.project / "cdk.out.both",
            account.project / "cdk.out.changed",
            "second",
            '"EvaluationPeriods": 3,',
            '"EvaluationPeriods": 4,',
        )
        account.must(
            "cdk", "deploy", "--all", "--app", str(assembly), "--require-approval", "never"
        )
        # Application Auto Scaling has alarms of its own, as in AWS.
        periods = {
            alarm["EvaluationPeriods"]
            for alarm in account.client("cloudwatch").describe_alarms()["MetricAlarms"]
            if "second" in alarm["AlarmName"]
            and not alarm["AlarmName"].startswith("TargetTracking-")
        }
        assert periods == {4}
        assert account.stack_status(f"{MODEL}-local") == "CREATE_COMPLETE"
        assert account.stack_status("second-local") == "UPDATE_COMPLETE"
        account.destroy_from(assembly, MODEL, "second")
        # Each in its own process and output folder, as two people would.
        processes = [
            account.popen(
                "cdk", "deploy", name, "-c", f"models={name}", "--require-approval", "never",
                "--output", f"cdk.out.{name}",
            )
            for name in (MODEL, "second")
        ]  # fmt: skip
        for process in processes:
            output, _ = process.communicate(timeout=240)
            assert process.returncode == 0, output
        assert len(account.serving_processes()) == 2
        account.destroy_from(assembly, MODEL, "second")
        assert account.serving_processes() == []
    finally:
        account.config("second").unlink()
        account.project.joinpath("model_configs/second.lock.json").unlink()
