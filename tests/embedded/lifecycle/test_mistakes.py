"""What a user does wrong, with the real CDK CLI."""

import pytest

from tests.support.assemblies import deploy_command
from tests.support.pages import ROOT
from tests.support.workbench import LATEST, MODEL

pytestmark = [pytest.mark.cdk, pytest.mark.size("all"), pytest.mark.timeout(900)]

BROKEN = (
    ("description: Search", "description: 5 #", "broken.yaml:3:1: description: 5 is not a text"),
    ("model:\n", "modell: {}\nmodel:\n", "unknown field [SW106]\n    Did you mean `model`?"),
    (
        "  family: gpt2\n",
        "  family: gpt2\n  family: gpt2\n",
        "model.family: the key is given twice; the first is on line 7",
    ),
    ("[ml.g4dn.xlarge]", "[ml.g4dn.xlage]", "Did you mean `ml.g4dn.xlarge`?"),
    ("download_timeout_seconds: 600", "download_timeout_seconds: 59", "59 is out of range"),
    ("check_timeout_seconds: 600", "check_timeout_seconds: 3601", "3601 is out of range"),
)


def test_bad_models_block_no_other(account):
    text = account.config(MODEL).read_text("utf-8").replace(f"name: {MODEL}", "name: broken")
    for good, bad, _ in BROKEN:
        assert good in text
        text = text.replace(good, bad)
    account.config("broken").write_text(text, "utf-8")
    account.add_model("changed")
    changed = account.config("changed")
    text = changed.read_text("utf-8")
    changed.write_text(text.replace("path: samples/gpt2-autocomplete/model", "path: samples"))
    try:
        account.deploy(MODEL, context=f"broken,changed,{MODEL}")
        # A bad one's report is in the assembly, whatever is asked of it.
        account.must("cdk", "diff", MODEL, "--app", LATEST)
        report = account.fails(*deploy_command(LATEST, "broken"))
        for _, _, message in BROKEN:
            assert message in report
        assert "6 problems" in report
        report = account.fails(*deploy_command(LATEST, "changed"))
        assert "the config changed after the sample was published" in report
        assert "Run `slipway publish changed --env local` and commit the lock file" in report
        for name in ("broken", "changed"):
            assert account.stack_status(f"{name}-local") is None
        account.destroy_from(LATEST, "broken")
        account.destroy_from(LATEST, MODEL)
        assert account.stack_status(f"{MODEL}-local") is None
    finally:
        account.config("broken").unlink()
        changed.unlink()
        account.project.joinpath("model_configs/changed.lock.json").unlink()


def test_a_model_whose_file_was_removed_can_be_found_and_destroyed(account):
    tags = {"slipway:model": "gone", "slipway:environment": "local"}
    cloudformation = account.client("cloudformation")
    cloudformation.create_stack(
        StackName="gone-local",
        TemplateBody='{"Resources": {"Topic": {"Type": "AWS::SNS::Topic"}}}',
        Tags=[{"Key": key, "Value": value} for key, value in tags.items()],
    )
    cloudformation.get_waiter("stack_create_complete").wait(
        StackName="gone-local", WaiterConfig={"Delay": 0.05}
    )
    found = account.says_no("slipway", "leftovers")
    command = "cdk destroy gone -c models=gone -c env=local"
    assert f"without model_configs/gone.yaml: run `{command}`" in found
    said = account.must(*command.split(), "--force")
    assert "There is no model_configs/gone.yaml. `gone` is a stack alone." in said
    assert account.stack_status("gone-local") is None
    assert (
        account.must("slipway", "leftovers")
        == "Every model that has a stack in local has its file.\n"
    )
    assert account.must("slipway", "leftovers", "gone").endswith(
        "target or log group. Without a valid file, its network and key were not looked at.\n"
    )


def test_nothing_is_there_yet(empty_account):
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
    report = empty_account.fails(
        "cdk", "deploy", MODEL, "--app", LATEST, "--require-approval", "never"
    )
    assert "Could not find model data at s3://" in report
    assert empty_account.stack_status("foundation-local") == "CREATE_COMPLETE"


def test_preflight_says_what_the_embedded_aws_cannot_serve(account):
    case = (ROOT / "tests/golden/cases/custom-image.yaml").read_text("utf-8")
    text = case.replace("name: custom-image", "name: own")
    text = text.replace("path: samples/tiny", "path: samples/gpt2-autocomplete/model")
    account.config("own").write_text(text, "utf-8")
    try:
        account.must("slipway", "publish", "own")
        report = account.fails("slipway", "preflight", "own")
        assert "No program of the embedded AWS stands for image 123456789012." in report
        assert report.startswith("1 problem\n")
        assert "[SW518]" in report
    finally:
        account.config("own").unlink()
        account.project.joinpath("model_configs/own.lock.json").unlink(missing_ok=True)
