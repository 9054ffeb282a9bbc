"""Two models, deployed time and again and beside each other with the real CDK CLI."""

import pytest

from tests.support.assemblies import changed_copy
from tests.support.workbench import MODEL

pytestmark = [pytest.mark.cdk, pytest.mark.size("all"), pytest.mark.timeout(900)]

BOTH = (MODEL, "second")


def test_three_deploys_in_a_row_then_two_at_once(account):
    account.add_model("second")
    try:
        config = account.config("second")
        text = config.read_text("utf-8")
        config.write_text(text.replace("alarms:\n", "alarms:\n  evaluation_periods_minutes: 3\n"))
        account.must(
            "cdk", "deploy", "--all", "-c", f"models={','.join(BOTH)}",
            "--output", "cdk.out.3", "--require-approval", "never",
        )  # fmt: skip
        for minutes in (4, 5):
            assembly = changed_copy(
                account.project / f"cdk.out.{minutes - 1}",
                account.project / f"cdk.out.{minutes}",
                "second",
                f'"EvaluationPeriods": {minutes - 1},',
                f'"EvaluationPeriods": {minutes},',
            )
            account.must(
                "cdk", "deploy", "--all", "--app", str(assembly), "--require-approval", "never"
            )
            alarms = account.client("cloudwatch").describe_alarms()["MetricAlarms"]
            # Application Auto Scaling has alarms of its own, as in AWS.
            periods = {
                alarm["EvaluationPeriods"]
                for alarm in alarms
                if "second" in alarm["AlarmName"]
                and not alarm["AlarmName"].startswith("TargetTracking-")
            }
            assert periods == {minutes}
        assert account.stack_status(f"{MODEL}-local") == "CREATE_COMPLETE"
        assert account.stack_status("second-local") == "UPDATE_COMPLETE"
        account.destroy_from(assembly, *BOTH)
        # Each in its own process and output folder, as two people would.
        processes = [
            account.popen(
                "cdk", "deploy", name, "-c", f"models={name}", "--require-approval", "never",
                "--output", f"cdk.out.{name}",
            )
            for name in BOTH
        ]  # fmt: skip
        for process in processes:
            output, _ = process.communicate(timeout=240)
            assert process.returncode == 0, output
        assert len(account.serving_processes()) == 2
        account.destroy_from(assembly, *BOTH)
        assert account.serving_processes() == []
    finally:
        account.config("second").unlink()
        account.project.joinpath("model_configs/second.lock.json").unlink()
