"""One AWS service's API: parse the request, validate it, call the operation, write the response.

Requests and responses follow botocore's service model, so that a field is spelled, required and
bounded exactly as the real API's. An operation is a function from parsed parameters (a dict of the
model's member names) to the response's members. It raises `ApiError` for errors of the client.
"""

from __future__ import annotations

import logging
import traceback
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl

from botocore.model import OperationNotFoundError
from moto.core.exceptions import ServiceException
from moto.core.parse import PROTOCOL_PARSERS
from moto.core.serialize import SerializationContext, get_serializer_class
from moto.core.utils import get_service_model
from werkzeug.datastructures import Headers, MultiDict

from slipway.embedded_aws.identity import ACCOUNT_ID
from slipway.embedded_aws.validation import validation_problem

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment

logger = logging.getLogger(__name__)

VALIDATION = "ValidationException"
"""The code with which SageMaker refuses a wrong request."""


class ApiError(ServiceException):  # type: ignore[misc]  # moto ships no type information
    """An error of the client, answered with the API's error code and message.

    The code is spelled as in the API's model, for example `ValidationException`.
    """

    def __init__(self, code: str, message: str) -> None:
        super().__init__(code, message)


class ValidationError(ApiError):
    """SageMaker's error for a wrong request, and for one that is not emulated."""

    def __init__(self, message: str) -> None:
        super().__init__(VALIDATION, message)


@dataclass(frozen=True)
class Caller:
    account_id: str
    region: str
    # The programs and versions of the header User-Agent.
    program: str = ""


# The members of a request and of its answer, by the names of botocore's model.
Parameters = dict[str, Any]
Answer = Mapping[str, Any]
Operation = Callable[[Caller, Parameters], Answer | None]


class ServiceApi:
    """A WSGI application for the operations of one AWS service.

    Args:
        service: botocore's name of the service, for example `cloudformation`.
        operations: maps an operation's name (`CreateStack`) to the function that handles it.
        validation_code: the error code this service uses for malformed input.
    """

    def __init__(
        self, service: str, operations: Mapping[str, Operation], *, validation_code: str
    ) -> None:
        self._model = get_service_model(service)
        unknown = set(operations) - set(self._model.operation_names)
        if unknown:
            raise ValueError(f"{service} has no operations {sorted(unknown)}")
        self._service = service
        self._operations = dict(operations)
        self._validation_code = validation_code
        # The first that is spoken here; boto3 and the AWS CLI prefer JSON to CBOR as well.
        spoken = self._model.metadata.get("protocols", [self._model.protocol])
        self._protocol: str = next(name for name in spoken if name in PROTOCOL_PARSERS)

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        name = self._operation_name(environ, body)
        try:
            operation_model = self._model.operation_model(name)
        except OperationNotFoundError:
            return respond(start_response, 400, [], b"unknown operation")
        serializer = get_serializer_class(self._service, self._protocol)(
            operation_model, context=SerializationContext(request_id=environ["slipway.request_id"])
        )
        try:
            result: Any = self._call(operation_model, environ, body)
        except ServiceException as error:
            result = error
        except Exception:
            # A bug of Slipway, not of the client: the log gets the traceback, the client a 500 to
            # report.
            logger.error("%s.%s failed:\n%s", self._service, name, traceback.format_exc())
            return respond(
                start_response, 500, [], b"internal error of the embedded AWS; see its log"
            )
        response = serializer.serialize(result if result is not None else {})
        payload = response["body"]
        return respond(
            start_response,
            response["status_code"],
            list(response["headers"].items()),
            payload.encode() if isinstance(payload, str) else payload,
        )

    def _operation_name(self, environ: WSGIEnvironment, body: bytes) -> str:
        target: str = environ.get("HTTP_X_AMZ_TARGET", "")
        if target:
            return target.rpartition(".")[2]
        return dict(parse_qsl(body.decode())).get("Action", "")

    def _call(
        self, operation_model: Any, environ: WSGIEnvironment, body: bytes
    ) -> Mapping[str, Any] | None:
        operation = self._operations.get(operation_model.name)
        if operation is None:
            raise ApiError(
                self._validation_code,
                f"The embedded AWS does not implement {self._service}:{operation_model.name}. "
                "docs/embedded-aws.md lists what it does.",
            )
        parser = PROTOCOL_PARSERS[self._protocol](operation_model)
        # keep_blank_values: an empty parameter value is a value to CloudFormation.
        values = MultiDict(parse_qsl(body.decode(), keep_blank_values=True))
        parameters = parser.parse(
            {
                "method": environ["REQUEST_METHOD"],
                "values": values,
                "headers": Headers(),
                "body": body,
                "url_path": environ.get("PATH_INFO", "/"),
                "url_params": {},
            }
        )
        problem = validation_problem(operation_model.input_shape, parameters)
        if problem is not None:
            raise ApiError(self._validation_code, problem)
        caller = Caller(ACCOUNT_ID, environ["slipway.region"], environ.get("HTTP_USER_AGENT", ""))
        return operation(caller, parameters)


def respond(
    start_response: StartResponse, status: int, headers: list[tuple[str, str]], body: bytes
) -> Iterable[bytes]:
    start_response(f"{status} ", [*headers, ("Content-Length", str(len(body)))])
    return [body]


def without_none(members: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in members.items() if value is not None}
