"""Turns a request (template, parameters, tags, capabilities) into a desired state and a plan."""

import uuid
from collections.abc import Mapping
from functools import partial
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from botocore.exceptions import ClientError

from slipway.embedded_aws.api import ApiError, Caller
from slipway.embedded_aws.clients import LoopbackClients
from slipway.embedded_aws.cloudformation.change_plan import ChangePlan, plan_changes
from slipway.embedded_aws.cloudformation.desired_state import DesiredState
from slipway.embedded_aws.cloudformation.existing_resources import find_existing
from slipway.embedded_aws.cloudformation.lookups import ServerLookups
from slipway.embedded_aws.cloudformation.parameters import parameter_values
from slipway.embedded_aws.cloudformation.resources.catalog import ResourceRegistry
from slipway.embedded_aws.cloudformation.stack import Stack, StackStore
from slipway.embedded_aws.cloudformation.stack_contents import StackIdentity
from slipway.embedded_aws.cloudformation.template import (
    Template,
    parse_template,
)

_NAMED_IAM_PROPERTIES = {
    "AWS::IAM::InstanceProfile": "InstanceProfileName",
    "AWS::IAM::ManagedPolicy": "ManagedPolicyName",
    "AWS::IAM::Role": "RoleName",
}
IAM_TYPES = {*_NAMED_IAM_PROPERTIES, "AWS::IAM::Policy"}


class RequestReader:
    """Turns a request into a desired state, and finds the changes that lead to it."""

    def __init__(
        self, clients: LoopbackClients, registry: ResourceRegistry, store: StackStore
    ) -> None:
        self._clients = clients
        self._registry = registry
        self._store = store

    def new_identity(self, caller: Caller, name: str) -> StackIdentity:
        """Returns the identity of a new stack."""
        scope = f"{caller.region}:{caller.account_id}"
        stack_id = f"arn:aws:cloudformation:{scope}:stack/{name}/{uuid.uuid4()}"
        return StackIdentity(name, stack_id, caller.region, caller.account_id)

    def read_template(
        self, caller: Caller, parameters: Mapping[str, Any], stack: Stack | None
    ) -> Template:
        """Returns the template that a request contains or refers to.

        Raises:
            ApiError: there is no template, it cannot be read, or it is malformed.
        """
        if parameters.get("UsePreviousTemplate"):
            if stack is None or stack.desired is None:
                raise ApiError("ValidationError", "There is no previous template to use.")
            return stack.desired.template
        if "TemplateBody" in parameters:
            return parse_template(parameters["TemplateBody"])
        if "TemplateURL" in parameters:
            return parse_template(self._from_s3(caller, parameters["TemplateURL"]))
        raise ApiError("ValidationError", "Either Template URL or Template Body must be specified.")

    def read_desired_state(
        self, caller: Caller, parameters: Mapping[str, Any], stack: Stack | None
    ) -> DesiredState:
        """Returns the desired state: the request's template with its values.

        Raises:
            ApiError: the template or a value is not acceptable.
        """
        template = self.read_template(caller, parameters, stack)
        deployed = stack.desired if stack is not None else None
        lookups = ServerLookups(self._clients, self._store, caller.region)
        values = parameter_values(
            template.parameters,
            parameters.get("Parameters", []),
            deployed.parameters if deployed else {},
            lookups.parameters,
        )
        given = parameters.get("Tags")
        tags = {tag["Key"]: tag["Value"] for tag in given} if given is not None else None
        if tags is None:
            tags = dict(deployed.tags) if deployed else {}
        capabilities = tuple(parameters.get("Capabilities", []))
        _check_capabilities(template, capabilities)
        return DesiredState(
            template=template,
            parameters=values,
            tags=tags,
            notification_arns=tuple(parameters.get("NotificationARNs", [])),
            capabilities=capabilities,
        )

    def plan_changes(
        self,
        identity: StackIdentity,
        desired: DesiredState,
        stack: Stack | None,
        *,
        import_existing: bool = False,
    ) -> tuple[DesiredState, ChangePlan]:
        """Compares the desired state with the stack.

        Raises:
            ApiError: the state cannot be reached.
        """
        find = partial(find_existing, self._clients, self._store, identity)
        return plan_changes(
            identity=identity,
            desired=desired,
            current=dict(stack.resources) if stack else {},
            deployed=stack.desired if stack else None,
            outputs=dict(stack.outputs) if stack else {},
            registry=self._registry,
            lookups=ServerLookups(self._clients, self._store, identity.region),
            find_existing=find if import_existing else lambda *_: None,
        )

    def _from_s3(self, caller: Caller, url: str) -> str:
        bucket, key = _bucket_and_key(url)
        version = parse_qs(urlsplit(url).query).get("versionId")
        selected = {"VersionId": version[0]} if version else {}
        client = self._clients.client("s3", caller.region)
        try:
            body: bytes = client.get_object(Bucket=bucket, Key=key, **selected)["Body"].read()
        except ClientError as error:
            raise ApiError(
                "ValidationError", f"S3 error: {error.response['Error'].get('Message', error)}"
            ) from None
        return body.decode()


def _bucket_and_key(url: str) -> tuple[str, str]:
    """Returns bucket and key of a path-style URL (also of this server) or virtual-hosted URL."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    path = unquote(parts.path).lstrip("/")
    bucket, marker, _ = host.partition(".s3.")
    if marker and bucket:
        return bucket, path
    if host.endswith(".localhost"):
        return host.removesuffix(".localhost"), path
    bucket, _, key = path.partition("/")
    if not bucket or not key:
        raise ApiError("ValidationError", f"TemplateURL must be a supported URL. ({url})")
    return bucket, key


def _check_capabilities(template: Template, capabilities: tuple[str, ...]) -> None:
    iam = [item for item in template.resources.values() if item.type in IAM_TYPES]
    named = any(_NAMED_IAM_PROPERTIES.get(item.type, "") in item.properties for item in iam)
    if named and "CAPABILITY_NAMED_IAM" not in capabilities:
        missing = "CAPABILITY_NAMED_IAM"
    elif iam and not {"CAPABILITY_IAM", "CAPABILITY_NAMED_IAM"} & set(capabilities):
        missing = "CAPABILITY_IAM"
    else:
        return
    raise ApiError("InsufficientCapabilitiesException", f"Requires capabilities : [{missing}]")
