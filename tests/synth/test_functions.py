"""The functions behind custom resources: what they have in common, the guard, and image builds."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from botocore.stub import Stubber

from slipway.stacks.constructs.handler_function import copy_function
from slipway.stacks.functions import foundation_guard, image_build
from slipway.stacks.functions.answers import Outcome, put, respond, run

URL = "https://cloudformation-custom-resource-response.s3.amazonaws.com/arn?Signature=a%2Bb"
IDENTIFIERS = {
    "StackId": "arn:aws:cloudformation:eu-west-1:210987654321:stack/some-production/0",
    "RequestId": "5f2d1c3e-1111-4000-8000-000000000000",
    "LogicalResourceId": "Own",
}
Put = Callable[[str, dict[str, str]], None]


def request(kind: str, **fields: Any) -> dict[str, Any]:
    return {"RequestType": kind, "ResponseURL": URL, **IDENTIFIERS, **fields}


def answers_to(call: Callable[[Put], None]) -> list[dict[str, str]]:
    """Returns the answers that a call puts, without what every answer has."""
    found: list[dict[str, str]] = []

    def answer(url: str, content: dict[str, str]) -> None:
        assert url == URL
        assert content.items() >= IDENTIFIERS.items()
        found.append({key: value for key, value in content.items() if key not in IDENTIFIERS})

    call(answer)
    return found


# Answers


def answer_to(event: dict[str, Any], outcome: Outcome | Exception) -> dict[str, str]:
    def work() -> Outcome:
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    (answer,) = answers_to(lambda put: respond(event, put, "own", work, lambda _: None))
    return answer


@pytest.mark.parametrize(
    ("earlier", "made", "expected"),
    [(None, None, "own"), (None, "made", "made"), ("earlier", None, "earlier")],
)
def test_a_resource_keeps_its_id(earlier: str | None, made: str | None, expected: str) -> None:
    fields = {"PhysicalResourceId": earlier} if earlier else {}
    assert (
        answer_to(request("Create", **fields), Outcome("done", made))["PhysicalResourceId"]
        == expected
    )


def test_an_error_is_answered_within_cloudformations_4096_bytes() -> None:
    answer = answer_to(request("Create"), ValueError("x" * 10_000))
    assert (answer["Status"], answer["Reason"]) == ("FAILED", "x" * 2000)
    assert len(json.dumps(answer | IDENTIFIERS)) < 4096


def test_a_throttled_call_is_tried_ten_times(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-1")
    found: list[dict[str, object]] = []
    run(lambda _, client, __, ___: found.append(client("sts").meta.config.retries), {}, None)
    [retries] = found
    assert (retries["mode"], retries["total_max_attempts"]) == ("standard", 10)


@pytest.fixture
def received() -> Iterator[tuple[str, list[tuple[str, str, str | None, bytes]]]]:
    """The address of a server, and what it was sent."""
    seen: list[tuple[str, str, str | None, bytes]] = []

    class Bucket(BaseHTTPRequestHandler):
        def do_PUT(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            seen.append((self.command, self.path, self.headers["Content-Type"], body))
            self.send_response(403 if self.path == "/expired" else 200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Bucket) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}", seen
        server.shutdown()
        thread.join()


def test_an_answer_is_put_without_a_content_type(received):
    address, seen = received
    put(f"{address}/arn?Signature=a%2Bb", {"Status": "SUCCESS"})
    # The signature of the address is of a request without one.
    assert seen == [("PUT", "/arn?Signature=a%2Bb", "", b'{"Status": "SUCCESS"}')]


def test_an_answer_that_is_refused_is_an_error_and_so_tried_again(received):
    with pytest.raises(OSError, match="HTTP Error 403"):
        put(f"{received[0]}/expired", {})


@pytest.mark.parametrize(
    "module", ["endpoint_update.handler", "foundation_guard", "image_build", "remote_publishing"]
)
def test_a_package_runs_alone(module: str, tmp_path: Path) -> None:
    """Lambda has the package, the standard library and boto3."""
    copy_function(module, tmp_path)
    script = (
        f"import sys; sys.path.insert(0, {str(tmp_path)!r}); "
        f"from functions.{module} import handler; "
        "print(callable(handler), *{name.partition('.')[0] for name in sys.modules})"
    )
    command = [sys.executable, "-I", "-c", script]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    assert said[0] == "True"
    assert {"slipway", "stacks", "boto3", "aws_cdk"} & set(said) == set()


# The guard of the foundation

KEY = "arn:aws:kms:eu-west-1:123456789012:key/one"
PROPERTIES = {"Project": "search", "Version": "3", "ArtifactBucket": "b", "ArtifactKeyArn": ""}
NOTHING = "Nothing stands in the way."


class Guarded:
    """CloudFormation and S3 as far as the function asks them."""

    def __init__(self, status: str, key: str | None, error: str) -> None:
        self._status, self._key, self._error = status, key, error

    def __call__(self, service: str) -> Guarded:
        assert service in ("cloudformation", "s3")
        return self

    def describe_stacks(self, *, StackName: str) -> dict[str, Any]:  # noqa: N803  # boto3's
        assert StackName == IDENTIFIERS["StackId"]
        return {"Stacks": [{"StackStatus": self._status}]}

    def get_bucket_encryption(self, *, Bucket: str) -> dict[str, Any]:  # noqa: N803  # boto3's
        assert Bucket == "b"
        if self._key is None:
            raise ClientError({"Error": {"Code": self._error, "Message": "no"}}, "x")
        rule = {"SSEAlgorithm": "aws:kms", "KMSMasterKeyID": self._key}
        rules = [{"ApplyServerSideEncryptionByDefault": rule}]
        return {"ServerSideEncryptionConfiguration": {"Rules": rules}}


def ask(
    kind: str,
    status: str,
    *,
    key: str | None = None,
    error: str = "NoSuchBucket",
    old: Mapping[str, str] | None = None,
    **properties: str,
) -> tuple[str, str]:
    """Calls the guard for a stack of that status; returns status and reason of its answer."""
    fields: dict[str, Any] = {"ResourceProperties": {**PROPERTIES, **properties}}
    if old is not None:
        fields["OldResourceProperties"] = {**PROPERTIES, **old}
    if kind != "Create":
        fields["PhysicalResourceId"] = "foundation-guard"
    account = Guarded(status, key, error)
    (answer,) = answers_to(
        lambda put: foundation_guard.handle(request(kind, **fields), account, put, lambda _: None)
    )
    assert answer.pop("PhysicalResourceId") == "foundation-guard"
    return answer["Status"], answer["Reason"]


def test_a_new_foundation_and_a_newer_version_are_let_through():
    assert ask("Create", "CREATE_IN_PROGRESS") == ("SUCCESS", NOTHING)
    assert ask("Update", "UPDATE_IN_PROGRESS", old={"Version": "2"}) == ("SUCCESS", NOTHING)
    # The tenth is newer than the ninth.
    assert ask("Update", "UPDATE_IN_PROGRESS", old={"Version": "9"}, Version="10")[0] == "SUCCESS"


def test_an_older_version_is_refused_and_its_rollback_is_not():
    assert ask("Update", "UPDATE_IN_PROGRESS", old={"Version": "4"}) == (
        "FAILED",
        "Version 4 of the foundation is deployed, and this is version 3. Nothing was changed. "
        "Bring the working copy up to date, or deploy a model alone with "
        "`cdk deploy NAME --exclusively`.",
    )
    for status in ("UPDATE_ROLLBACK_IN_PROGRESS", "UPDATE_ROLLBACK_FAILED"):
        assert ask("Update", status, old={"Version": "4"}) == ("SUCCESS", NOTHING)


@pytest.mark.parametrize(("project", "said"), [("ads", "ads"), ("", "no project")])
def test_another_owner_is_refused(project, said):
    assert ask("Update", "UPDATE_IN_PROGRESS", old={}, Project=project) == (
        "FAILED",
        f"This foundation belongs to the project search, and {said} is deployed over it. Nothing "
        "was changed. Give this repository a `project` of its own in environments.yaml.",
    )


def test_owners_are_not_compared_where_the_foundation_has_none():
    assert ask("Update", "UPDATE_IN_PROGRESS", old={"Project": ""})[0] == "SUCCESS"


def test_a_new_key_for_an_old_bucket_is_refused():
    assert ask("Create", "CREATE_IN_PROGRESS", key=KEY) == (
        "FAILED",
        "The bucket b of an earlier foundation exists, and its artifacts are encrypted with "
        f"{KEY}. Nothing was changed. Add `artifact_key_arn: {KEY}` to the environment in "
        "environments.yaml, and deploy with `--import-existing-resources`.",
    )
    assert ask("Create", "CREATE_IN_PROGRESS", key=KEY, ArtifactKeyArn=KEY)[0] == "SUCCESS"
    other = KEY.replace("one", "two")
    assert ask("Create", "CREATE_IN_PROGRESS", key=KEY, ArtifactKeyArn=other)[0] == "FAILED"


def test_a_foundation_that_is_older_than_the_guard_has_its_bucket_already():
    assert ask("Create", "UPDATE_IN_PROGRESS", key=KEY) == ("SUCCESS", NOTHING)


def test_what_cannot_be_looked_at_is_not_taken_for_absent():
    status, reason = ask("Create", "CREATE_IN_PROGRESS", error="AccessDenied")
    assert status == "FAILED"
    assert "AccessDenied" in reason


def test_deletion_asks_nobody():
    assert ask("Delete", "never asked") == ("SUCCESS", NOTHING)


# Builds of images

REPOSITORY = "210987654321.dkr.ecr.eu-west-1.amazonaws.com/slipway/tensorrt"
URI, OLD_URI = (f"{REPOSITORY}:trt10.13-{digest}" for digest in ("01234567", "fedcba98"))
BUILD = "Project-0A1B:5f2d1c3e-0000-4000-8000-000000000000"
LOG = "https://console.aws.amazon.com/cloudwatch/home?region=eu-west-1#logsV2:log-groups"
FUNCTION = "arn:aws:lambda:eu-west-1:210987654321:function:Function"
BASE = "nvcr.io/nvidia/tensorrt:25.09-py3"
# No variable has the address of the answer.
VARIABLES = {"IMAGE_URI": URI, "BASE_IMAGE": BASE, "TARGET": "compiler"}
START = {
    "projectName": "Project-0A1B",
    "idempotencyToken": IDENTIFIERS["RequestId"],
    "environmentVariablesOverride": [
        {"name": name, "value": value, "type": "PLAINTEXT"} for name, value in VARIABLES.items()
    ],
}


def build_request(kind: str, **fields: Any) -> dict[str, Any]:
    properties = {
        "ServiceToken": FUNCTION,
        "ProjectName": "Project-0A1B",
        "ImageUri": URI,
        "BaseImage": BASE,
        "Target": "compiler",
    }
    return request(kind, ResourceProperties=properties, **fields)


# The function's own call, once the build was started.
WATCHING = build_request("Create", BuildId=BUILD)


def build(status: str, **fields: Any) -> dict[str, Any]:
    return {"builds": [{"id": BUILD, "buildStatus": status, **fields}]}


def told(status: str, reason: str, uri: str = URI) -> dict[str, str]:
    return {"PhysicalResourceId": uri, "Status": status, "Reason": reason}


class Account:
    """Real clients of CodeBuild and Lambda with their answers given."""

    def __init__(self) -> None:
        keys = {"aws_access_key_id": "test", "aws_secret_access_key": "test"}
        self.clients: dict[str, Any] = {
            name: boto3.client(name, region_name="eu-west-1", **keys)  # type: ignore[call-overload]
            for name in ("codebuild", "lambda")
        }
        self.stubber = Stubber(self.clients["codebuild"])
        self.calls = Stubber(self.clients["lambda"])
        self.waited_seconds = 0.0

    def expect_call(self, event: dict[str, Any]) -> None:
        """The function is to call itself with the event and the build."""
        payload = json.dumps({**event, "BuildId": BUILD})
        expected = {"FunctionName": FUNCTION, "InvocationType": "Event", "Payload": payload}
        self.calls.add_response("invoke", {"StatusCode": 202}, expected)

    def expect_looks(self, *answers: dict[str, Any]) -> None:
        for answer in answers:
            self.stubber.add_response("batch_get_builds", answer, {"ids": [BUILD]})

    def answers(self, event: dict[str, Any]) -> list[dict[str, str]]:
        def wait(seconds: float) -> None:
            self.waited_seconds += seconds

        with self.stubber, self.calls:
            found = answers_to(
                lambda put: image_build.handle(event, self.clients.__getitem__, put, wait)
            )
        self.stubber.assert_no_pending_responses()
        self.calls.assert_no_pending_responses()
        return found


@pytest.fixture
def account() -> Account:
    return Account()


@pytest.mark.parametrize(
    "event",
    [build_request("Create"), build_request("Update", PhysicalResourceId=OLD_URI)],
    ids=["create", "update"],
)
def test_a_request_starts_a_build_and_leaves_the_answer_to_its_end(account: Account, event):
    account.stubber.add_response("start_build", {"build": {"id": BUILD}}, START)
    account.expect_call(event)
    assert account.answers(event) == []


def test_a_build_that_does_not_start_is_answered_at_once(account: Account):
    account.stubber.add_client_error(
        "start_build", "AccountLimitExceededException", "Cannot have more than 1 builds in queue"
    )
    assert account.answers(build_request("Create")) == [
        told(
            "FAILED",
            f"The build of {URI} did not start: An error occurred "
            "(AccountLimitExceededException) when calling the StartBuild operation: "
            "Cannot have more than 1 builds in queue",
        )
    ]


def test_deleting_keeps_the_image_and_the_identity(account: Account):
    found = account.answers(build_request("Delete", PhysicalResourceId=OLD_URI))
    assert found == [told("SUCCESS", "Images stay in their repository.", OLD_URI)]


@pytest.mark.parametrize("status", ["SUCCEEDED", "FAILED", "FAULT", "STOPPED", "TIMED_OUT"])
def test_the_end_of_a_build_is_told_with_the_link_to_its_log(account: Account, status):
    account.expect_looks(build("IN_PROGRESS"), build(status, logs={"deepLink": LOG}))
    answered = "SUCCESS" if status == "SUCCEEDED" else "FAILED"
    reason = f"The build of {URI} ended as {status}. Its log: {LOG}"
    assert account.answers(WATCHING) == [told(answered, reason)]
    assert account.waited_seconds == 15


def test_a_build_that_outlasts_a_call_is_watched_by_the_next(account: Account):
    account.expect_looks(*[build("IN_PROGRESS")] * 50)
    account.expect_call(WATCHING)
    assert account.answers(WATCHING) == []
    assert account.waited_seconds == 750


def test_a_build_without_a_log_or_a_right_to_look_is_told_as_well(account: Account):
    account.expect_looks(build("TIMED_OUT"))
    (answer,) = account.answers(WATCHING)
    assert answer["Reason"].endswith("TIMED_OUT. Its log: none was written")
    account.stubber.add_client_error("batch_get_builds", "AccessDeniedException", "no")
    (answer,) = account.answers(WATCHING)
    assert answer["Status"] == "FAILED"
    assert "cannot be looked at" in answer["Reason"]


def test_a_call_that_is_denied_is_left_to_lambda_to_try_again(account: Account):
    account.stubber.add_response("start_build", {"build": {"id": BUILD}}, START)
    account.calls.add_client_error("invoke", "AccessDeniedException", "not yet")
    with pytest.raises(ClientError, match="not yet"):
        account.answers(build_request("Create"))
