"""One model's life with the real CDK CLI, AWS CLI, s5cmd and boto3, and what a user does wrong."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.support.workbench import MODEL, Workbench

pytestmark = [pytest.mark.cdk, pytest.mark.timeout(900)]

ENDPOINT = f"{MODEL}-local"


@pytest.fixture(scope="module")
def deployed(account: Workbench) -> Iterator[Workbench]:
    account.deploy(MODEL)
    yield account
    account.destroy(MODEL)


class TestDeployed:
    def test_the_endpoint_answers_in_words(self, deployed: Workbench) -> None:
        response = deployed.client("sagemaker-runtime").invoke_endpoint(
            EndpointName=ENDPOINT,
            ContentType="application/json",
            Body=json.dumps({"inputs": "The Amazon Resource Name (ARN)"}),
        )
        (answer,) = json.load(response["Body"])
        assert answer["generated_text"].strip().startswith("of ")
        assert response["InvokedProductionVariant"] == "AllTraffic"

    def test_the_aws_cli_sees_what_the_stack_declared(
        self, deployed: Workbench, tmp_path_factory: pytest.TempPathFactory
    ) -> None:
        endpoint = deployed.aws("sagemaker", "describe-endpoint", "--endpoint-name", ENDPOINT)
        assert endpoint["EndpointStatus"] == "InService"
        config = deployed.aws(
            "sagemaker",
            "describe-endpoint-config",
            "--endpoint-config-name",
            endpoint["EndpointConfigName"],
        )
        (variant,) = config["ProductionVariants"]
        assert variant["InstanceType"] == "ml.g4dn.xlarge"
        assert variant["ModelDataDownloadTimeoutInSeconds"] == 600
        assert variant["ContainerStartupHealthCheckTimeoutInSeconds"] == 600

        (target,) = deployed.aws(
            "application-autoscaling",
            "describe-scalable-targets",
            "--service-namespace",
            "sagemaker",
        )["ScalableTargets"]
        assert target["ResourceId"] == f"endpoint/{ENDPOINT}/variant/AllTraffic"
        assert (target["MinCapacity"], target["MaxCapacity"]) == (1, 4)
        (policy,) = deployed.aws(
            "application-autoscaling",
            "describe-scaling-policies",
            "--service-namespace",
            "sagemaker",
        )["ScalingPolicies"]
        tracking = policy["TargetTrackingScalingPolicyConfiguration"]
        assert tracking["TargetValue"] == 600

        alarms = deployed.aws("cloudwatch", "describe-alarms")["MetricAlarms"]
        latency = next(a for a in alarms if a.get("MetricName") == "ModelLatency")
        assert (latency["Threshold"], latency["ExtendedStatistic"]) == (600_000, "p99")
        rate = next(a for a in alarms if a.get("Metrics"))
        (returned,) = [query for query in rate["Metrics"] if query["ReturnData"]]
        assert returned["Expression"] == "100 * MAX([server_errors, failures]) / invocations"

        groups = deployed.aws("logs", "describe-log-groups")["logGroups"]
        (group,) = [g for g in groups if g["logGroupName"].endswith(f"/{ENDPOINT}")]
        assert group["retentionInDays"] == 30

        answer = tmp_path_factory.mktemp("answer") / "answer.json"
        deployed.must(
            "aws",
            "sagemaker-runtime",
            "invoke-endpoint",
            "--endpoint-name",
            ENDPOINT,
            "--content-type",
            "application/json",
            "--body",
            json.dumps({"inputs": "Specifies the"}),
            str(answer),
        )
        assert json.loads(answer.read_text("utf-8"))[0]["generated_text"]

    def test_publishing_again_moves_nothing(self, deployed: Workbench) -> None:
        lock = deployed.project / "model_configs" / f"{MODEL}.lock.json"
        before = lock.read_bytes()
        result = json.loads(deployed.must("slipway", "publish", MODEL, "--json"))
        assert (result["uploaded_bytes"], result["lock_changed"]) == (0, False)
        assert lock.read_bytes() == before

    def test_the_committed_lock_is_of_the_committed_sample(self, deployed: Workbench) -> None:
        # The workbench published its copy; a lock that had to change was stale in the repository.
        from demo import ROOT

        name = f"model_configs/{MODEL}.lock.json"
        assert (deployed.project / name).read_bytes() == (ROOT / name).read_bytes()

    def test_preflight_finds_everything(self, deployed: Workbench) -> None:
        assert deployed.must("slipway", "preflight", MODEL).count("ok  ") == 3

    def test_a_change_is_reviewed_and_applied(self, deployed: Workbench) -> None:
        config = deployed.config(MODEL)
        original = config.read_text("utf-8")
        config.write_text(original.replace("max_instance_count: 4", "max_instance_count: 8"))
        try:
            diff = deployed.must("cdk", "diff", MODEL, "-c", f"models={MODEL}", "--no-color")
            assert "[~] AWS::ApplicationAutoScaling::ScalableTarget" in diff
            assert "[-] 4" in diff
            assert "[+] 8" in diff
            assert "AWS::SageMaker::Endpoint " not in diff
            deployed.deploy(MODEL)
        finally:
            config.write_text(original, "utf-8")
        targets = deployed.client("application-autoscaling").describe_scalable_targets(
            ServiceNamespace="sagemaker"
        )["ScalableTargets"]
        assert [target["MaxCapacity"] for target in targets] == [8]


class TestMistakes:
    BROKEN = (
        (
            "description: Search",
            "description: 5 #",
            "broken.yaml:3:1: description: 5 is not a text",
        ),
        ("model:\n", "modell: {}\nmodel:\n", "unknown field\n    Did you mean `model`?"),
        (
            "  family: gpt2\n",
            "  family: gpt2\n  family: gpt2\n",
            "model.family: the key is given twice; the first is on line 7",
        ),
        ("[ml.g4dn.xlarge]", "[ml.g4dn.xlage]", "Did you mean `ml.g4dn.xlarge`?"),
        ("download_timeout_seconds: 600", "download_timeout_seconds: 59", "59 is out of range"),
        ("check_timeout_seconds: 600", "check_timeout_seconds: 3601", "3601 is out of range"),
    )

    def test_a_bad_model_blocks_no_other(self, account: Workbench) -> None:
        text = account.config(MODEL).read_text("utf-8").replace(f"name: {MODEL}", "name: broken")
        for good, bad, _ in self.BROKEN:
            assert good in text
            text = text.replace(good, bad)
        account.config("broken").write_text(text, "utf-8")
        try:
            both = f"broken,{MODEL}"
            account.deploy(MODEL, context=both)
            account.must("cdk", "diff", MODEL, "-c", f"models={both}")
            report = account.fails(
                "cdk", "deploy", "broken", "-c", f"models={both}", "--require-approval", "never"
            )
            for _, _, message in self.BROKEN:
                assert message in report
            assert "6 problems" in report
            assert account.stack_status("broken-local") is None
            account.must("cdk", "destroy", "broken", "--force", "-c", f"models={both}")
            account.must("cdk", "destroy", MODEL, "--force", "-c", f"models={both}")
            assert account.stack_status(ENDPOINT) is None
        finally:
            account.config("broken").unlink()

    def test_a_config_changed_after_publishing_names_the_command(self, account: Workbench) -> None:
        account.add_model("changed")
        config = account.config("changed")
        text = config.read_text("utf-8")
        config.write_text(text.replace("path: samples/gpt2-autocomplete/model", "path: samples"))
        try:
            report = account.fails("cdk", "deploy", "changed", "-c", "models=changed")
            assert "the config changed after the sample was published" in report
            assert "Run `slipway publish changed --env local` and commit the lock file" in report
            assert account.stack_status("changed-local") is None
        finally:
            config.unlink()
            account.project.joinpath("model_configs/changed.lock.json").unlink()

    def test_nothing_is_there_yet(self, empty_account: Workbench) -> None:
        bucket = "slipway-local-123456789012-us-east-1"
        report = empty_account.fails("slipway", "publish", MODEL)
        assert f"the artifact bucket {bucket} is not there" in report
        assert "Run `cdk deploy foundation -c env=local` first." in report

        report = empty_account.fails("slipway", "preflight", MODEL)
        assert "the SSM parameter /slipway/local/artifact-key-arn is not there" in report
        assert "Run `cdk deploy foundation -c env=local`." in report
        assert f"Run `slipway publish {MODEL} --env local`." in report

        report = empty_account.fails(
            "cdk", "deploy", MODEL, "--exclusively", "--require-approval", "never"
        )
        assert "/slipway/local/artifact-key-arn" in report
        assert "cdk deploy foundation" in report

        # Without --exclusively the foundation comes along, and what is missing is the artifact.
        report = empty_account.fails("cdk", "deploy", MODEL, "--require-approval", "never")
        assert "Could not find model data at s3://" in report
        assert empty_account.stack_status("foundation-local") == "CREATE_COMPLETE"


class TestManyStacks:
    def test_three_deploys_in_a_row_then_two_at_once(self, account: Workbench) -> None:
        account.add_model("second")
        try:
            config = account.config("second")
            text = config.read_text("utf-8")
            for minutes in (3, 4, 5):
                config.write_text(
                    text.replace("alarms:\n", f"alarms:\n  evaluation_periods_minutes: {minutes}\n")
                )
                account.must(
                    "cdk", "deploy", "--all", "-c", f"models={MODEL},second",
                    "--require-approval", "never",
                )  # fmt: skip
            for name in (MODEL, "second"):
                assert account.stack_status(f"{name}-local") in (
                    "CREATE_COMPLETE",
                    "UPDATE_COMPLETE",
                )
                account.destroy(name)
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
            for name in (MODEL, "second"):
                account.destroy(name)
            assert account.serving_processes() == []
        finally:
            account.config("second").unlink()
            account.project.joinpath("model_configs/second.lock.json").unlink()


class TestDestroyed:
    def test_nothing_is_left_but_the_bucket_and_the_lock(self, account: Workbench) -> None:
        account.deploy(MODEL)
        assert len(account.serving_processes()) == 1
        found = account.run("slipway", "leftovers", MODEL)
        assert found.returncode == 1
        kinds = {line.partition(":")[0] for line in found.stdout.splitlines()}
        assert kinds == {
            "alarm",
            "endpoint",
            "endpoint config",
            "log group",
            "model",
            "scalable target",
        }

        account.destroy(MODEL)

        assert account.must("slipway", "leftovers", MODEL).startswith("Nothing is left of")
        assert account.serving_processes() == []
        assert account.client("sagemaker").list_models()["Models"] == []
        assert account.client("cloudwatch").describe_alarms()["MetricAlarms"] == []
        buckets = [item["Name"] for item in account.client("s3").list_buckets()["Buckets"]]
        assert "slipway-local-123456789012-us-east-1" in buckets
        assert (account.project / "model_configs" / f"{MODEL}.lock.json").is_file()
