"""Runs the functions behind custom resources: the deployed code, in this process.

A function's code is its package in S3. Beside the handler that Lambda calls, its module must have
`handle(event, client, answer, wait)`. That function does the same work, but takes its surroundings
as arguments, so that it runs here without Lambda's environment. A function without it is refused
by name.

Printed lines go to the function's log group. A call is refused unless an inline policy of the role
allows the action; resources and conditions of the policy are not checked.
"""

import importlib
import io
import itertools
import sys
import tempfile
import threading
import time
import uuid
import zipfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from botocore.exceptions import ClientError

from slipway.embedded_aws.api import Caller
from slipway.embedded_aws.cloudformation.resources.base import (
    Properties,
    ResourceContext,
    ResourceFailedError,
    allowed_members,
)
from slipway.embedded_aws.iam.permissions import listed, matches
from slipway.embedded_aws.iam.trust import is_assumable

_ENTRY = "handle"
# Operations whose IAM action has another name.
_ACTIONS = {"GetBucketEncryption": "GetEncryptionConfiguration"}
# Services whose actions begin with another name than their signatures.
_PREFIXES = {"monitoring": "cloudwatch"}
# Waits that take minutes in AWS end within this time here.
_LONGEST_WAIT_SECONDS = 0.2
_numbers = itertools.count()


@dataclass(frozen=True)
class _Function:
    """A deployed function.

    Args:
        role_name: the role whose policies limit its calls.
        log_group: receives its output; None keeps none.
        entry: its `handle`.
        output: printed lines that are not in the log yet.
    """

    role_name: str
    log_group: str | None
    entry: Callable[..., None]
    output: list[str]


class LambdaRuntime:
    """The functions of every stack, by ARN."""

    def __init__(self) -> None:
        self._functions: dict[str, _Function] = {}
        # One invocation at a time: two stacks never share a function.
        self._lock = threading.Lock()

    def deploy(self, context: ResourceContext, arn: str, properties: Properties) -> None:
        """Loads the code of an AWS::Lambda::Function, also in place of an earlier version.

        Raises:
            ResourceFailedError: it is not Python, the package has no such module, or the module
                has no `handle`, which is called instead of the handler's function.
        """
        runtime = str(properties.get("Runtime"))
        if not runtime.startswith("python"):
            raise ResourceFailedError(
                f"The embedded AWS does not run {runtime}, only Python. "
                "docs/embedded-aws.md lists what it does."
            )
        allowed_members(properties["Code"], ("S3Bucket", "S3Key"), "Code")
        logging = properties.get("LoggingConfig", {})
        allowed_members(logging, ("LogFormat", "LogGroup"), "LoggingConfig")
        output: list[str] = []
        module_name = properties["Handler"].rpartition(".")[0]
        module = _load_module(_package(context, properties["Code"]), module_name, output.append)
        entry = getattr(module, _ENTRY, None)
        if entry is None:
            raise ResourceFailedError(
                f"The embedded AWS runs functions that have {_ENTRY}(event, client, answer, wait); "
                f"{module_name}.py has none. docs/embedded-aws.md lists what it does."
            )
        lambdas = Caller(context.identity.account_id, context.region)
        role, principal = properties["Role"], "lambda.amazonaws.com"
        if not is_assumable(context.clients, lambdas, role, principal, "function"):
            raise ResourceFailedError(
                'Resource handler returned message: "The role defined for the function cannot be '
                'assumed by Lambda." (HandlerErrorCode: InvalidRequest)'
            )
        role_name = role.rpartition("/")[2]
        with self._lock:
            self._functions[arn] = _Function(role_name, logging.get("LogGroup"), entry, output)

    def remove(self, arn: str) -> None:
        """Removes a function; a function that does not exist counts as removed."""
        with self._lock:
            self._functions.pop(arn, None)

    def invoke(self, context: ResourceContext, arn: str, event: Mapping[str, Any]) -> Any:
        """Runs a function and returns its answer.

        Raises:
            ResourceFailedError: there is no such function, or it ended without an answer.
        """
        with self._lock:
            function = self._functions.get(arn)
        if function is None:
            raise ResourceFailedError(f"Function not found: {arn}")
        answers: list[Any] = []
        name = arn.rpartition(":")[2]
        user = (
            f"arn:aws:sts::{context.identity.account_id}:assumed-role/{function.role_name}/{name}"
        )
        allowed = list(_allowed_actions(context, function.role_name))
        error: Exception | None = None
        try:
            function.entry(
                event,
                lambda service: _PermittedClient(context.client(service), user, allowed),
                lambda _url, content: answers.append(content),
                lambda seconds: context.wait(min(seconds, _LONGEST_WAIT_SECONDS)),
            )
        # Lambda would log any exception, and CloudFormation would get no answer.
        except Exception as caught:
            error = caught
            function.output.append(f"[ERROR] {type(caught).__name__}: {caught}")
        _write_log(context, function)
        if not answers:
            raise ResourceFailedError(
                "CloudFormation did not receive a response from your Custom Resource. Please check "
                f"your logs for requestId [{event['RequestId']}]. ({error})"
            )
        return answers[-1]


class _PermittedClient:
    """A boto3 client whose operations fail unless the function's role allows the action."""

    def __init__(self, client: Any, user: str, allowed: list[str]) -> None:
        self._client = client
        self._user = user
        self._allowed = allowed

    def __getattr__(self, name: str) -> Any:
        operation = self._client.meta.method_to_api_mapping.get(name)
        if operation is not None:
            service = self._client.meta.service_model.signing_name
            action = f"{_PREFIXES.get(service, service)}:{_ACTIONS.get(operation, operation)}"
            if not matches(self._allowed, action):
                message = (
                    f"User: {self._user} is not authorized to perform: {action} because "
                    f"no identity-based policy allows the {action} action"
                )
                raise ClientError(
                    {"Error": {"Code": "AccessDeniedException", "Message": message}}, operation
                )
        return getattr(self._client, name)


def _allowed_actions(context: ResourceContext, role_name: str) -> Iterator[str]:
    iam = context.client("iam")
    for name in iam.list_role_policies(RoleName=role_name)["PolicyNames"]:
        document = iam.get_role_policy(RoleName=role_name, PolicyName=name)["PolicyDocument"]
        for statement in document["Statement"]:
            if statement["Effect"] == "Allow":
                yield from listed(statement["Action"])


def _write_log(context: ResourceContext, function: _Function) -> None:
    lines, group = list(function.output), function.log_group
    function.output.clear()
    if group is None or not lines:
        return
    logs = context.client("logs")
    stream = time.strftime(f"%Y/%m/%d/[$LATEST]{uuid.uuid4().hex}", time.gmtime())
    try:
        logs.create_log_stream(logGroupName=group, logStreamName=stream)
        moment = int(time.time() * 1000)
        logs.put_log_events(
            logGroupName=group,
            logStreamName=stream,
            logEvents=[{"timestamp": moment, "message": line} for line in lines],
        )
    except logs.exceptions.ResourceNotFoundException:
        return  # Lambda, too, continues without its log


def _package(context: ResourceContext, code: Properties) -> bytes:
    try:
        answer = context.client("s3").get_object(Bucket=code["S3Bucket"], Key=code["S3Key"])
    except ClientError as error:
        details = error.response["Error"]
        raise ResourceFailedError(
            'Resource handler returned message: "Error occurred while GetObject. S3 Error Code: '
            f'{details["Code"]}. S3 Error Message: {details["Message"]}" '
            "(HandlerErrorCode: InvalidRequest)"
        ) from None
    body: bytes = answer["Body"].read()
    return body


def _load_module(package: bytes, name: str, write: Callable[[str], None]) -> ModuleType:
    """Imports a module of a package, a ZIP file, apart from all other modules.

    Lambda has the package as the root of its imports. Here several functions share one process,
    and two versions of a function may have modules of one name. Each package is therefore imported
    below a name of its own, which no other import can reach. Its modules may import one another by
    relative names. `write` takes each line that they print.
    """
    root = ModuleType(f"_function_{next(_numbers)}")

    def write_words(*words: object, **_: object) -> None:
        write(" ".join(map(str, words)))

    with tempfile.TemporaryDirectory() as folder:
        root.__path__ = [folder]
        sys.modules[root.__name__] = root
        try:
            with zipfile.ZipFile(io.BytesIO(package)) as archive:
                archive.extractall(folder)
            # The user's own code, which an account would run as well.
            return importlib.import_module(f"{root.__name__}.{name.replace('/', '.')}")
        except (zipfile.BadZipFile, ImportError, SyntaxError) as error:
            told = str(error).replace(f"{root.__name__}.", "")
            raise ResourceFailedError(
                f"Unable to import module '{name}' of the function's package: {told}"
            ) from None
        finally:
            # The functions keep their modules alive; nothing else may find them.
            for loaded in [each for each in sys.modules if each.partition(".")[0] == root.__name__]:
                sys.modules.pop(loaded).__dict__["print"] = write_words
