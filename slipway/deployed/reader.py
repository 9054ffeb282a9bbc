"""Reads an endpoint with everything that belongs to it, for `slipway import --endpoint`.

Every call is one that describes or reads. A call that is denied does not stop the others, so that
one report names all rights that are missing.
"""

from collections.abc import Callable
from typing import Any, TypeVar

from botocore.exceptions import ClientError

from slipway.access import paged
from slipway.codes.code import Code
from slipway.deployed import calls
from slipway.deployed.described import Described, containers_of, data_address
from slipway.deployed.packages import read_package
from slipway.errors import Kind, Problem, UserError, did_you_mean
from slipway.planning.described_alarms import watches

_LOG_GROUPS = "/aws/sagemaker/Endpoints/"
# IAM's words in the services' own spellings.
_DENIED = ("AccessDenied", "AccessDeniedException", "UnauthorizedOperation")
_SHOWN_NAMES = 10

_Answer = TypeVar("_Answer")
# Any: boto3's clients.
Client = Callable[[str], Any]


def read_endpoint(client: Client, name: str, region: str) -> Described:
    """Returns what AWS answers about an endpoint.

    Raises `UserError` if there is no such endpoint, its configuration or model was deleted, or
    calls are denied, and ClientError if AWS refuses a call for another reason.
    """
    return _Reader(client, name, region).described()


class _Reader:
    def __init__(self, client: Client, name: str, region: str) -> None:
        self._client = client
        self._name = name
        self._region = region
        self._problems: list[Problem] = []

    def described(self) -> Described:
        sagemaker = self._client("sagemaker")
        endpoint = self._asked(
            "sagemaker:DescribeEndpoint", lambda: calls.describe_endpoint(sagemaker, self._name)
        )
        if endpoint is None and not self._problems:
            raise UserError([self._no_endpoint(sagemaker)])
        config: dict[str, Any] = {}
        if endpoint is not None:
            action, name = "sagemaker:DescribeEndpointConfig", endpoint["EndpointConfigName"]
            config = (
                self._named(action, "endpoint configuration", calls.described_config, name) or {}
            )
        variants = config.get("ProductionVariants", ())
        models = self._models([*variants, *config.get("ShadowProductionVariants", ())])
        # A variant without a model hosts components, which nothing else tells.
        components: list[str] = []
        if any(not each.get("ModelName") for each in variants):
            listed = self._asked(
                "sagemaker:ListInferenceComponents",
                lambda: calls.component_names(sagemaker, self._name),
            )
            components = listed or []
        component = None
        if len(components) == 1:  # a config can say one, and none of several
            component = self._asked(
                "sagemaker:DescribeInferenceComponent",
                lambda: calls.described_component(sagemaker, components[0]),
            )
        models |= self._models([(component or {}).get("Specification", {})])
        resources = [
            *(f"endpoint/{self._name}/variant/{each['VariantName']}" for each in variants),
            *(f"inference-component/{each}" for each in components),
        ]
        targets = self._scaling("describe_scalable_targets", ResourceIds=resources)
        scaled = dict.fromkeys(each["ResourceId"] for each in targets)
        policies, actions = (
            [item for each in scaled for item in self._scaling(operation, ResourceId=each)]
            for operation in ("describe_scaling_policies", "describe_scheduled_actions")
        )
        alarms = self._alarms(endpoint or {}, [self._name, *components])
        tags = self._tags(sagemaker, endpoint or {})
        log_group = self._log_group()
        containers = [each for model in models.values() for each in containers_of(model)]
        packages = {
            address: read_package(self._client("s3"), address)
            for address in filter(None, map(data_address, containers))
        }
        if self._problems:
            raise UserError(self._problems)
        return Described(
            self._region,
            endpoint or {},
            config,
            models,
            components,
            component,
            targets,
            policies,
            actions,
            alarms,
            tags,
            log_group,
            packages,
        )

    def _asked(self, action: str, call: Callable[[], _Answer]) -> _Answer | None:
        """Returns the answer of a call; None where it is denied, which is noted."""
        try:
            return call()
        except ClientError as error:
            if error.response["Error"]["Code"] not in _DENIED:
                raise
            message = f"`{action}` is denied, which the import of endpoint {self._name} needs: "
            message += error.response["Error"]["Message"]
            remedy = "Use credentials that may call it. "
            remedy += f"`slipway iam --import {self._name}` prints the whole policy."
            self._problems.append(Problem(Code.IMPORT_DENIED, Kind.STATE, message, remedy))
            return None

    def _no_endpoint(self, sagemaker: Any) -> Problem:
        remedy = "`aws sagemaker list-endpoints` shows the names of the endpoints."
        try:
            listed = list(paged(sagemaker, "list_endpoints", "Endpoints"))
        except ClientError:
            pass  # the right to list is not needed for anything else
        else:
            names = [each["EndpointName"] for each in listed]
            hint = did_you_mean(self._name, names)
            shown = ", ".join(names[:_SHOWN_NAMES])
            more = ", ..." if len(names) > _SHOWN_NAMES else ""
            there = f"There are: {shown}{more}." if names else "There is none."
            remedy = f"{hint}{there} `--region` names another region."
        message = f"there is no endpoint {self._name} in {self._region}"
        return Problem(Code.IMPORT_NO_ENDPOINT, Kind.STATE, message, remedy)

    def _models(self, naming: list[dict[str, Any]]) -> dict[str, Any]:
        """Returns the models that variants, or the specification of a component, name."""
        names = dict.fromkeys(each["ModelName"] for each in naming if each.get("ModelName"))
        found = {
            name: self._named("sagemaker:DescribeModel", "model", calls.described_model, name)
            for name in names
        }
        return {name: model for name, model in found.items() if model is not None}

    def _named(
        self, action: str, kind: str, describe: Callable[[Any, str], Any], name: str
    ) -> dict[str, Any] | None:
        """Returns what the endpoint names; None where it is denied or was deleted."""
        before = len(self._problems)
        found = self._asked(action, lambda: describe(self._client("sagemaker"), name))
        if found is None and len(self._problems) == before:
            message = (
                f"the {kind} {name} of endpoint {self._name} was deleted, and SageMaker tells "
            )
            message += "nothing more of what serves"
            remedy = "Import what you know of it: `slipway import NAME --call FILE`."
            self._problems.append(Problem(Code.IMPORT_GONE, Kind.STATE, message, remedy))
        return found

    def _scaling(self, operation: str, **arguments: Any) -> list[dict[str, Any]]:
        client = self._client("application-autoscaling")
        action = "".join(part.title() for part in operation.split("_"))
        action = f"application-autoscaling:{action}"
        return (
            self._asked(action, lambda: calls.scaling_items(client, operation, **arguments)) or []
        )

    def _alarms(self, endpoint: dict[str, Any], names: list[str]) -> list[dict[str, Any]]:
        rollback = endpoint.get("LastDeploymentConfig", {}).get("AutoRollbackConfiguration", {})
        undoing = {each["AlarmName"] for each in rollback.get("Alarms", ())}

        def read() -> list[dict[str, Any]]:
            # CloudWatch finds alarms by one metric at a time only: the account's are all read.
            return [
                alarm
                for alarm in paged(self._client("cloudwatch"), "describe_alarms", "MetricAlarms")
                if alarm["AlarmName"] in undoing or any(watches(alarm, name) for name in names)
            ]

        return self._asked("cloudwatch:DescribeAlarms", read) or []

    def _tags(self, sagemaker: Any, endpoint: dict[str, Any]) -> dict[str, str]:
        if not endpoint:
            return {}

        def read() -> dict[str, str]:
            tags = paged(sagemaker, "list_tags", "Tags", ResourceArn=endpoint["EndpointArn"])
            return {tag["Key"]: tag["Value"] for tag in tags}

        return self._asked("sagemaker:ListTags", read) or {}

    def _log_group(self) -> dict[str, Any] | None:
        name = f"{_LOG_GROUPS}{self._name}"

        def read() -> dict[str, Any] | None:
            groups = paged(
                self._client("logs"), "describe_log_groups", "logGroups", logGroupNamePrefix=name
            )
            return next((each for each in groups if each["logGroupName"] == name), None)

        return self._asked("logs:DescribeLogGroups", read)
