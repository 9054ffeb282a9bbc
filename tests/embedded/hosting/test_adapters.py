"""Adapter components: the copies of their base load them, and requests name them."""

from collections.abc import Iterator
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.embedded.hosting.conftest import await_gone, refused
from tests.embedded.hosting.hosted_components import SMALL, Hosted
from tests.support.waiting import eventually


@pytest.fixture(scope="module")
def endpoint(hosted: Hosted) -> str:
    return hosted.endpoint()


@pytest.fixture(scope="module")
def base(hosted: Hosted, endpoint: str) -> str:
    return hosted.component(endpoint, "base ")


def part_of(stream: Iterator[dict[str, Any]]) -> str:
    return str(next(stream)["PayloadPart"]["Bytes"].decode())


def test_each_request_gets_the_adapter_that_it_names(hosted, endpoint, base):
    pid = hosted.invoke(endpoint, base, "pid")
    formal = hosted.adapter(endpoint, base, "formal ")
    short = hosted.adapter(endpoint, base, "short ")
    assert hosted.invoke(endpoint, formal) == "formal x"
    assert hosted.invoke(endpoint, short) == "short x"
    assert hosted.invoke(endpoint, base) == "base x"
    assert {hosted.invoke(endpoint, name, "pid") for name in (base, formal, short)} == {pid}
    described = hosted.settled(formal)
    assert described["Specification"]["BaseInferenceComponentName"] == base
    assert "RuntimeConfig" not in described
    eventually(lambda: hosted.sum_of(formal, "Invocations") == 2)
    # Copies that start later load it before its first request.
    hosted.scale(base, 0)
    with pytest.raises(ClientError, match="has no capacity"):
        hosted.invoke(endpoint, formal)
    eventually(lambda: hosted.sum_of(formal, "NoCapacityInvocationFailures") == 1)
    hosted.scale(base, 1)
    assert hosted.invoke(endpoint, formal) == "formal x"
    hosted.update(short, hosted.adapted(base, "shorter "))
    assert hosted.settled(short)["InferenceComponentStatus"] == "InService"
    assert hosted.invoke(endpoint, short) == "shorter x"
    hosted.delete(formal)
    assert hosted.invoke(endpoint, short) == "shorter x"
    hosted.delete(short)


def test_a_removed_adapter_finishes_its_requests(hosted, endpoint, base, tmp_path):
    name = hosted.adapter(endpoint, base, "leaving ")
    goes_on = tmp_path / "on"
    body = f"stream begun until={goes_on} done end"
    streams = [iter(hosted.stream(endpoint, name, body)) for _ in range(3)]
    assert [part_of(stream) for stream in streams] == ["begun"] * 3
    hosted.sagemaker.delete_inference_component(InferenceComponentName=name)
    # Named while the last requests are answered, and when they are.
    during = refused(hosted.invoke, endpoint, name)
    assert during == f"Adapter {name} is Deleting, and answers nothing."
    assert hosted.status(name) == "Deleting"
    assert hosted.invoke(endpoint, base) == "base x"
    goes_on.touch()
    assert [part_of(stream) for stream in streams] == ["done"] * 3
    assert [list(stream) for stream in streams] == [[]] * 3
    await_gone(hosted.sagemaker.describe_inference_component, InferenceComponentName=name)
    message = refused(hosted.invoke, endpoint, name)
    assert message == (
        f"Inference Component {name} of endpoint {endpoint} of account 123456789012 not found."
    )
    assert hosted.invoke(endpoint, base) == "base x"


def test_an_adapter_that_the_server_refuses_has_failed(hosted, endpoint, base):
    name = hosted.begin_adapter(endpoint, base, "")
    described = hosted.settled(name)
    assert described["InferenceComponentStatus"] == "Failed"
    reason = "The server did not load the adapter: 424 no adapter there"
    assert described["FailureReason"] == reason
    message = refused(hosted.invoke, endpoint, name)
    assert message == f"Adapter {name} is Failed, and answers nothing."
    message = refused(hosted.sagemaker.delete_inference_component, InferenceComponentName=base)
    assert message.endswith(f"it has the adapters {name}.")
    hosted.delete(name)


def test_what_is_no_adapter_is_refused(hosted, endpoint, base):
    create = hosted.sagemaker.create_inference_component
    asked = {"InferenceComponentName": "refused", "EndpointName": endpoint}
    right = hosted.adapted(base, "x")
    copies = {"RuntimeConfig": {"CopyCount": 1}}
    wrong = {**right, "ComputeResourceRequirements": SMALL}
    assert refused(create, **asked, Specification=wrong, **copies) == (
        "An adapter is loaded by its base component and has no ComputeResourceRequirements, "
        "RuntimeConfig."
    )
    image = {**right, "Container": {**right["Container"], "Image": hosted.account.image}}
    assert refused(create, **asked, Specification=image) == (
        "An adapter needs a Container with an ArtifactUrl, and nothing else."
    )
    other = hosted.endpoint()
    asked["EndpointName"] = other
    message = refused(create, **asked, Specification=right)
    assert message == f'"{base}" is no base component on the endpoint "{other}".'
    hosted.account.delete(other)
