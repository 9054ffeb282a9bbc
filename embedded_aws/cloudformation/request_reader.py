"""Turns a request (template, parameters, tags, capabilities) into a desired state and a plan."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from botocore.exceptions import ClientError

from slipway.embedded_aws.api import ApiError, Caller
from slipway.embedded_aws.cloudformation.desired_state import DesiredState
from slipway.embedded_aws.cloudformation.document import invalid
from slipway.embedded_aws.cloudformation.lookups import ServerLookups
from slipway.embedded_aws.cloudformation.parameters import parameter_values
from slipway.embedded_aws.cloudformation.stack import OperationContext, Stack
from slipway.embedded_aws.cloudformation.template import Template, parse_template

_NAMED_IAM_PROPERTIES = {
    "AWS::IAM::InstanceProfile": "InstanceProfileName",
    "AWS::IAM::ManagedPolicy": "ManagedPolicyName",
    "AWS::IAM::Role": "RoleName",
}
IAM_TYPES = {*_NAMED_IAM_PROPERTIES, "AWS::IAM::Policy"}


def read_template(
    context: OperationContext, caller: Caller, parameters: Mapping[str, Any], stack: Stack | None
) -> Template:
    """Returns the template that a request contains or refers to.

    Raises ApiError if there is no template, it cannot be read, or it is malformed.
    """
    if parameters.get("UsePreviousTemplate"):
        if stack is None or stack.desired is None:
            raise invalid("There is no previous template to use.")
        return stack.desired.template
    if "TemplateBody" in parameters:
        return parse_template(parameters["TemplateBody"])
    if "TemplateURL" in parameters:
        return parse_template(_from_s3(context, caller, parameters["TemplateURL"]))
    raise invalid("Either Template URL or Template Body must be specified.")


def read_desired_state(
    context: OperationContext, caller: Caller, parameters: Mapping[str, Any], stack: Stack | None
) -> DesiredState:
    """Returns the desired state: the request's template with its values.

    Raises ApiError if the template or a value is not acceptable.
    """
    template = read_template(context, caller, parameters, stack)
    deployed = stack.desired if stack is not None else None
    values = parameter_values(
        template.parameters,
        parameters.get("Parameters", []),
        deployed.parameters if deployed else {},
        ServerLookups(context, caller.region).parameters,
    )
    if "Tags" in parameters:
        tags = {tag["Key"]: tag["Value"] for tag in parameters["Tags"]}
    else:
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


def _from_s3(context: OperationContext, caller: Caller, url: str) -> str:
    bucket, key = _bucket_and_key(url)
    version = parse_qs(urlsplit(url).query).get("versionId")
    selected = {"VersionId": version[0]} if version else {}
    client = context.clients.client("s3", caller.region)
    try:
        body: bytes = client.get_object(Bucket=bucket, Key=key, **selected)["Body"].read()
    except ClientError as error:
        raise invalid(f"S3 error: {error.response['Error'].get('Message', error)}") from None
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
        raise invalid(f"TemplateURL must be a supported URL. ({url})")
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
