"""Each member of the API that starts and calls endpoints has a setting, or a reason why not.

What a setting says is read from the golden templates, and from the calls of `slipway invoke`. The
rest is in api_members.json. AWS's newest members come with botocore, and fail here.
"""

import functools
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import botocore.session
import pytest
from botocore.exceptions import ClientError
from botocore.model import ListShape, Shape, StructureShape

from slipway.cli.invoke import MEMBERS, QUEUE_MEMBERS
from slipway.config.sections.endpoint import AsyncInference
from slipway.errors import UserError
from slipway.operations.invoke.asynchronous import invoke_async
from slipway.operations.invoke.realtime import Request, _parameters

TEMPLATES = Path(__file__).parents[2] / "golden" / "templates"
TABLE = json.loads(Path(__file__).with_name("api_members.json").read_text("utf-8"))
# Members of CloudFormation's resources have the names of these operations' members.
OPERATIONS = {
    "AWS::SageMaker::Model": ("CreateModel",),
    "AWS::SageMaker::EndpointConfig": ("CreateEndpointConfig",),
    "AWS::SageMaker::Endpoint": ("CreateEndpoint", "UpdateEndpoint"),
    "AWS::SageMaker::InferenceComponent": ("CreateInferenceComponent", "UpdateInferenceComponent"),
}
REQUEST = Request("chat", b"{}", "application/json", "text/plain", "one", "chat")


@functools.cache
def _input(operation: str) -> Shape:
    service = "sagemaker-runtime" if operation.startswith("Invoke") else "sagemaker"
    model = botocore.session.get_session().get_service_model(service)
    shape: Shape = model.operation_model(operation).input_shape
    return shape


def _named(shape: Shape) -> str:
    """Returns the name of a structure; that of a request is its operation's."""
    return shape.name.removesuffix("Request").removesuffix("Input")


def _members(shape: Shape, refused: set[str]) -> Iterator[str]:
    """Yields each member of a structure, `Structure.Member`; what is refused is not looked into."""
    if isinstance(shape, ListShape):
        yield from _members(shape.member, refused)
    elif isinstance(shape, StructureShape):
        for name, member in shape.members.items():
            path = f"{_named(shape)}.{name}"
            yield path
            if path not in refused:
                yield from _members(member, refused)


def _said(shape: Shape, value: Any) -> Iterator[str]:
    """Yields the members of a structure that a template or a call sets."""
    if isinstance(shape, ListShape) and isinstance(value, list):
        for each in value:
            yield from _said(shape.member, each)
    elif isinstance(shape, StructureShape) and isinstance(value, dict):
        for name in value.keys() & shape.members.keys():
            yield f"{_named(shape)}.{name}"
            yield from _said(shape.members[name], value[name])


def _in_templates() -> Iterator[str]:
    for path in TEMPLATES.glob("*.json"):
        for resource in json.loads(path.read_text("utf-8"))["Resources"].values():
            for operation in OPERATIONS.get(resource["Type"], ()):
                yield from _said(_input(operation), resource["Properties"])


class _Calls:
    """Stands for boto3's clients: it keeps the last call, and answers none."""

    def client(self, _service: str) -> "_Calls":
        return self

    def get_object(self, **_request: Any) -> None:
        """No answer has the name of this one."""
        raise ClientError({"Error": {"Code": "NoSuchKey", "Message": ""}}, "GetObject")

    def put_object(self, **_request: Any) -> None:
        """The request's body lies in S3."""

    def invoke_endpoint_async(self, **request: Any) -> None:
        self.request = request
        raise ClientError({"Error": {"Code": "Seen", "Message": ""}}, "InvokeEndpointAsync")


def _in_calls() -> Iterator[str]:
    called = {**_parameters(REQUEST), **dict.fromkeys(MEMBERS.values(), "x")}
    yield from _said(_input("InvokeEndpoint"), called)
    yield from _said(_input("InvokeEndpointWithResponseStream"), called)
    queue = AsyncInference.model_validate({"input": "s3://a/", "output": "s3://b/"})
    request = replace(REQUEST, members=dict.fromkeys(QUEUE_MEMBERS.values(), "x"))
    for is_inline in (False, True):
        calls: Any = _Calls()
        with pytest.raises(UserError):
            invoke_async(
                request, queue, calls, limit_seconds=1, show=lambda _: None, is_inline=is_inline
            )
        yield from _said(_input("InvokeEndpointAsync"), calls.request)


def test_each_member_has_a_setting_or_a_reason():
    refused = [member for row in TABLE["refused"] for member in row["members"]]
    assert len(refused) == len(set(refused))
    said = {*_in_templates(), *_in_calls()}
    operations = [name for names in OPERATIONS.values() for name in names]
    operations += ["InvokeEndpoint", "InvokeEndpointWithResponseStream", "InvokeEndpointAsync"]
    known = {each for name in operations for each in _members(_input(name), set(refused))}
    assert sorted(known - said - set(refused)) == [], "a setting or a reason is missing"
    assert sorted(said & set(refused)) == [], "a setting says it now: remove its row"
    assert sorted(set(refused) - known) == [], "the API has no such member"


def test_each_reason_has_a_source():
    for row in TABLE["refused"]:
        assert all(row[name] for name in ("members", "reason", "source")), row
