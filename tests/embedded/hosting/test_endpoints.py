"""Endpoints come into service, are updated and are deleted, or fail with a reason."""

import json
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.embedded.hosting.conftest import CANARY, refused
from tests.support.processes import is_running

ARN = "arn:aws:sagemaker:us-east-1:123456789012:endpoint"


def test_endpoint_comes_into_service(account):
    config = account.config(account.variant(account.model("slow"), InitialInstanceCount=2))
    name = account.begin(config)
    creating = account.sagemaker.describe_endpoint(EndpointName=name)
    assert creating["EndpointStatus"] == "Creating"
    assert creating["EndpointArn"] == f"{ARN}/{name}"
    described = account.settled(name)
    assert described["EndpointStatus"] == "InService"
    assert described["EndpointConfigName"] == config
    assert described["LastModifiedTime"] > described["CreationTime"]
    assert "FailureReason" not in described
    (variant,) = described["ProductionVariants"]
    assert variant["CurrentInstanceCount"] == variant["DesiredInstanceCount"] == 2
    assert variant["CurrentWeight"] == variant["DesiredWeight"] == 1.0
    assert variant["DeployedImages"][0]["SpecifiedImage"] == account.image
    summaries = account.sagemaker.list_endpoints(StatusEquals="InService", NameContains=name)
    assert [item["EndpointName"] for item in summaries["Endpoints"]] == [name]


def test_a_container_has_its_model_and_ends_with_its_fleet(account):
    name = account.endpoint()
    assert json.loads(account.invoke(name, "files")) == {
        "1/weights.bin": ["weights", "0o444"],
        "config.json": ["{}", "0o444"],
    }
    first = int(account.invoke(name, "pid"))
    account.update(name, account.config(account.variant(account.model())))
    assert not is_running(first)
    second = int(account.invoke(name, "pid"))
    model_directory = Path(json.loads(account.invoke(name, "environment"))["SM_MODEL_DIR"])
    assert model_directory.is_dir()
    account.delete(name)
    assert not is_running(second)
    assert not model_directory.exists()


def test_an_archive_is_extracted_and_may_not_lead_out_of_the_directory(account):
    account.put_archive("model.tar.gz", {"code/inference.py": b"pass"})
    model = account.model(ModelDataUrl="s3://artifacts/model.tar.gz")
    name = account.serve(account.variant(model))
    assert json.loads(account.invoke(name, "files")) == {"code/inference.py": ["pass", "0o444"]}
    account.put_archive("evil.tar.gz", {"../evil": b"x"})
    model = account.model(ModelDataUrl="s3://artifacts/evil.tar.gz")
    assert "Failed to download model data" in account.failure(account.variant(model))


@pytest.mark.usefixtures("users_profile")
def test_container_gets_its_environment_and_nobody_elses(account, monkeypatch):
    monkeypatch.setenv("THEIR_TOKEN", "secret")
    environment = json.loads(account.invoke(account.endpoint(mark="m"), "environment"))
    assert environment["MARK"] == "m"
    assert environment["FROM_IMAGE"] == "yes"
    assert environment["AWS_REGION"] == "us-east-1"
    assert environment["AWS_ACCESS_KEY_ID"] == "embedded-aws"
    assert environment["HOME"] != os.environ["HOME"]
    assert not {"AWS_CONFIG_FILE", "AWS_PROFILE", "THEIR_TOKEN"} & set(environment)


def test_isolated_container_has_no_aws(account):
    name = account.name()
    account.sagemaker.create_model(
        ModelName=name, PrimaryContainer={"Image": account.image}, EnableNetworkIsolation=True
    )
    endpoint = account.serve(account.variant(name))
    environment = json.loads(account.invoke(endpoint, "environment"))
    assert not {"AWS_ENDPOINT_URL", "AWS_ACCESS_KEY_ID"} & set(environment)


def test_dying_container_fails_the_endpoint_at_once(account):
    reason = account.failure(account.variant(account.model("dead")))
    assert reason.startswith(
        "The primary container for production variant AllTraffic did not pass the ping health "
        "check. Please check CloudWatch logs for this endpoint. The container exited with status "
        "7; its last lines: stand-in dead pid "
    )
    assert reason.endswith("cannot load the model: no such layer")


def test_unknown_image_fails_with_what_is_known(account):
    image = "123456789012.dkr.ecr.us-east-1.amazonaws.com/other/thing:latest"
    assert account.failure(account.variant(account.model(Image=image))) == (
        f"No program of the embedded AWS stands for image {image}. "
        "Known repositories: tests/stand-in. `serving.local` of a config names a program for an "
        "image of your own."
    )


def test_one_failing_variant_leaves_none_running(account):
    good, bad = (account.variant(account.model(mode), mode) for mode in ("ok", "dead"))
    assert "production variant dead" in account.failure(good, bad)
    (log,) = (account.directory / "logs").glob("ok-*.log")
    assert not is_running(int(log.read_text().splitlines()[0].rpartition(" ")[2]))


def test_errors_are_sagemakers(account):
    name = account.endpoint()
    config = account.sagemaker.describe_endpoint(EndpointName=name)["EndpointConfigName"]
    create, describe = account.sagemaker.create_endpoint, account.sagemaker.describe_endpoint
    message = refused(create, EndpointName=name, EndpointConfigName=config)
    assert message == f'Cannot create already existing endpoint "{ARN}/{name}".'
    message = refused(describe, EndpointName="absent")
    assert message == f'Could not find endpoint "{ARN}/absent".'
    message = refused(create, EndpointName="new", EndpointConfigName="absent")
    assert message == (
        'Could not find endpoint configuration "arn:aws:sagemaker:us-east-1:123456789012:'
        'endpoint-config/absent".'
    )


def test_change_in_progress_excludes_another(account):
    config = account.config(account.variant(account.model("slow")))
    name = account.begin(config)
    message = f'Cannot update in-progress endpoint "{ARN}/{name}".'
    assert refused(account.update, name, config) == message
    assert refused(account.sagemaker.delete_endpoint, EndpointName=name) == message
    account.settled(name)


def test_update_loses_no_request(account):
    name = account.endpoint(mark="old ")
    config = account.config(account.variant(account.model("slow", mark="new ")))
    answers: list[list[str]] = [[] for _ in range(4)]
    done = threading.Event()

    def ask(mine: list[str]) -> None:
        while not done.is_set():
            mine.append(account.invoke(name))

    with ThreadPoolExecutor(len(answers)) as pool:
        asking = [pool.submit(ask, mine) for mine in answers]
        account.sagemaker.update_endpoint(EndpointName=name, EndpointConfigName=config)
        updating = account.sagemaker.describe_endpoint(EndpointName=name)
        described = account.settled(name)
        done.set()
    assert updating["EndpointStatus"] == "Updating"
    assert updating["PendingDeploymentSummary"]["EndpointConfigName"] == config
    assert described["EndpointConfigName"] == config
    assert [asked.exception() for asked in asking] == [None] * len(answers)
    assert account.invoke(name) == "new x"
    assert any("old x" in mine for mine in answers)
    for mine in answers:
        # Each asks again only when it was answered: after the new fleet, never the old one.
        count = mine.count("old x")
        assert mine == ["old x"] * count + ["new x"] * (len(mine) - count)


def test_an_update_whose_models_do_not_start_names_each_and_is_undone(account):
    name = account.endpoint(mark="old ")
    before = account.sagemaker.describe_endpoint(EndpointName=name)["EndpointConfigName"]
    modes = {"stable": "ok", "candidate": "dead", "other": "dead"}
    variants = [account.variant(account.model(mode), each) for each, mode in modes.items()]
    described = account.update(name, account.config(*variants))
    assert described["EndpointStatus"] == "InService"
    assert described["EndpointConfigName"] == before
    assert [each["VariantName"] for each in described["ProductionVariants"]] == ["AllTraffic"]
    assert "did not pass the ping health check" in described["FailureReason"]
    named = [each for each in modes if f"production variant {each} " in described["FailureReason"]]
    assert named == ["candidate", "other"]
    assert account.invoke(name) == "old x"
    config = account.config(account.variant(account.model(mark="new ")))
    assert "FailureReason" not in account.update(name, config)


@pytest.mark.parametrize(
    ("retained", "excluded", "count", "weight"),
    [
        (False, [], 1, 1.0),
        (True, [], 3, 0.5),
        (True, ["DesiredInstanceCount"], 1, 0.5),
        (True, ["DesiredWeight"], 3, 1.0),
    ],
)
def test_update_retains_what_is_asked(account, retained, excluded, count, weight):
    name = account.endpoint()
    scaled = account.scale(name, DesiredInstanceCount=3, DesiredWeight=0.5)
    (scaled,) = scaled["ProductionVariants"]
    assert (scaled["CurrentInstanceCount"], scaled["CurrentWeight"]) == (3, 0.5)
    (updated,) = account.update(
        name,
        account.config(account.variant(account.model())),
        RetainAllVariantProperties=retained,
        ExcludeRetainedVariantProperties=[{"VariantPropertyType": kind} for kind in excluded],
    )["ProductionVariants"]
    assert (updated["CurrentInstanceCount"], updated["CurrentWeight"]) == (count, weight)


def test_updates_that_sagemaker_refuses(account):
    name = account.endpoint()
    config = account.config(account.variant(account.model()))
    message = refused(account.update, name, config, DeploymentConfig=CANARY)
    assert "needs at least 2 instances" in message
    old = account.settled(name)["EndpointConfigName"]
    account.sagemaker.delete_endpoint_config(EndpointConfigName=old)
    message = refused(account.update, name, config)
    assert message.startswith("Could not find endpoint configuration ")
    assert message.endswith(f'/{old}".')


def test_instance_pools_take_the_first_choice(account):
    first, second = account.model(mark="first "), account.model(mark="second ")
    variant = account.variant(second)
    del variant["InstanceType"]
    variant["InstancePools"] = [
        {"InstanceType": "ml.g5.xlarge", "Priority": 2},
        {"InstanceType": "ml.g6.xlarge", "Priority": 1, "ModelNameOverride": first},
    ]
    name = account.serve(variant)
    (described,) = account.settled(name)["ProductionVariants"]
    assert described["InstancePools"] == [
        {"InstanceType": "ml.g5.xlarge", "CurrentInstanceCount": 0},
        {"InstanceType": "ml.g6.xlarge", "CurrentInstanceCount": 1},
    ]
    assert account.invoke(name) == "first x"


# The capacity of a training plan, which does not exist here.
RESERVED = {
    "CapacityReservationPreference": "capacity-reservations-only",
    "MlReservationArn": "arn:aws:sagemaker:us-east-1:123456789012:training-plan/search",
}


def test_an_endpoint_tells_its_reservation_and_a_pool_has_none(account):
    variant = account.variant(account.model()) | {"CapacityReservationConfig": RESERVED}
    name = account.begin(account.config(variant))
    (described,) = account.settled(name)["ProductionVariants"]
    assert described["CapacityReservationConfig"] == RESERVED
    del variant["InstanceType"]
    pooled = variant | {"InstancePools": [{"InstanceType": "ml.g5.xlarge", "Priority": 1}]}
    assert "which needs the InstanceType of its reservation" in refused(account.config, pooled)
