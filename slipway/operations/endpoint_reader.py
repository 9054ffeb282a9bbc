"""Reads an endpoint with everything that belongs to it, for `slipway import --endpoint`.

Every call is one that describes or reads. A call that is denied does not stop the others, so that
one report names all rights that are missing.
"""

import functools
from collections.abc import Callable, Iterator
from typing import Any

from botocore.exceptions import ClientError

from slipway.codes.code import Code
from slipway.errors import Kind, Problem, UserError, did_you_mean
from slipway.importing.endpoint.containers import data_of
from slipway.importing.endpoint.described import Described, Package
from slipway.operations.live import (
    describe_endpoint,
    described_component,
    described_config,
    described_model,
)
from slipway.operations.packages import read_package
from slipway.planning.described_alarms import watches

_NAMESPACE = "sagemaker"
_LOG_GROUPS = "/aws/sagemaker/Endpoints/"
# IAM's words in the services' own spellings.
_DENIED = ("AccessDenied", "AccessDeniedException", "UnauthorizedOperation")
_SHOWN_NAMES = 10

# Any: boto3's clients.
Client = Callable[[str], Any]


def read_endpoint(client: Client, name: str, region: str) -> Described:
    """Returns what AWS answers about an endpoint.

    Args:
        client: returns boto3's client of a service.
        name: the endpoint.
        region: its region, for messages.

    Raises:
        UserError: there is no such endpoint, its configuration or model was deleted, or calls are
            denied.
        ClientError: AWS refuses a call for another reason.
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
            "sagemaker:DescribeEndpoint", lambda: describe_endpoint(sagemaker, self._name)
        )
        if endpoint is None and not self._problems:
            raise UserError([self._no_endpoint(sagemaker)])
        config = self._config(sagemaker, endpoint)
        models = self._models(
            sagemaker,
            [*config.get("ProductionVariants", ()), *config.get("ShadowProductionVariants", ())],
        )
        resources = [
            f"endpoint/{self._name}/variant/{variant['VariantName']}"
            for variant in config.get("ProductionVariants", ())
        ]
        # A variant without a model hosts components, which nothing else tells.
        hosts = any(not each.get("ModelName") for each in config.get("ProductionVariants", ()))
        components = self._components(sagemaker) if hosts else []
        component = self._component(sagemaker, components)
        models |= self._models(sagemaker, [(component or {}).get("Specification", {})])
        resources += [f"inference-component/{each}" for each in components]
        targets = self._targets(resources)
        found = [each["ResourceId"] for each in targets]
        policies = self._of_targets("describe_scaling_policies", "ScalingPolicies", found)
        actions = self._of_targets("describe_scheduled_actions", "ScheduledActions", found)
        alarms = self._alarms(endpoint or {}, [self._name, *components])
        tags = self._tags(sagemaker, endpoint or {})
        log_group = self._log_group()
        packages = {
            address: self._package(address)
            for model in models.values()
            for address in data_of(model)
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

    def _asked(self, action: str, call: Callable[[], Any]) -> Any:
        """Returns the answer of a call; None where it is denied, which is noted."""
        try:
            return call()
        except ClientError as error:
            if error.response["Error"]["Code"] not in _DENIED:
                raise
            self._problems.append(
                Problem(
                    Code.IMPORT_DENIED,
                    Kind.STATE,
                    f"`{action}` is denied, which the import of endpoint {self._name} needs: "
                    f"{error.response['Error']['Message']}",
                    f"Use credentials that may call it. `slipway iam --import {self._name}` prints "
                    "the whole policy.",
                )
            )
            return None

    def _no_endpoint(self, sagemaker: Any) -> Problem:
        remedy = "`aws sagemaker list-endpoints` shows the names of the endpoints."
        try:
            pages = sagemaker.get_paginator("list_endpoints").paginate()
            names = [each["EndpointName"] for page in pages for each in page["Endpoints"]]
        except ClientError:
            pass  # the right to list is not needed for anything else
        else:
            hint = did_you_mean(self._name, names)
            shown = ", ".join(names[:_SHOWN_NAMES])
            more = ", ..." if len(names) > _SHOWN_NAMES else ""
            there = f"There are: {shown}{more}." if names else "There is none."
            remedy = f"{hint}{there} `--region` names another region."
        return Problem(
            Code.IMPORT_NO_ENDPOINT,
            Kind.STATE,
            f"there is no endpoint {self._name} in {self._region}",
            remedy,
        )

    def _config(self, sagemaker: Any, endpoint: dict[str, Any] | None) -> dict[str, Any]:
        if endpoint is None:
            return {}
        name = endpoint["EndpointConfigName"]
        before = len(self._problems)
        found = self._asked(
            "sagemaker:DescribeEndpointConfig", lambda: described_config(sagemaker, name)
        )
        if found is None and len(self._problems) == before:
            self._gone("endpoint configuration", name)
        return found or {}

    def _models(self, sagemaker: Any, naming: list[dict[str, Any]]) -> dict[str, Any]:
        """Returns the models that variants, or the specification of a component, name."""
        models: dict[str, Any] = {}
        for name in dict.fromkeys(each["ModelName"] for each in naming if each.get("ModelName")):
            before = len(self._problems)
            found = self._asked(
                "sagemaker:DescribeModel", functools.partial(described_model, sagemaker, name)
            )
            if found is not None:
                models[name] = found
            elif len(self._problems) == before:
                self._gone("model", name)
        return models

    def _gone(self, kind: str, name: str) -> None:
        self._problems.append(
            Problem(
                Code.IMPORT_GONE,
                Kind.STATE,
                f"the {kind} {name} of endpoint {self._name} was deleted, and SageMaker tells "
                "nothing more of what serves",
                "Import what you know of it: `slipway import NAME --call FILE`.",
            )
        )

    def _components(self, sagemaker: Any) -> list[str]:
        def listed() -> list[str]:
            pages = sagemaker.get_paginator("list_inference_components").paginate(
                EndpointNameEquals=self._name
            )
            return [
                each["InferenceComponentName"]
                for page in pages
                for each in page["InferenceComponents"]
            ]

        return self._asked("sagemaker:ListInferenceComponents", listed) or []

    def _component(self, sagemaker: Any, names: list[str]) -> dict[str, Any] | None:
        """Returns the only component: a config can say one, and none of several."""
        if len(names) != 1:
            return None
        found: dict[str, Any] | None = self._asked(
            "sagemaker:DescribeInferenceComponent", lambda: described_component(sagemaker, names[0])
        )
        return found

    def _targets(self, resources: list[str]) -> list[dict[str, Any]]:
        if not resources:
            return []  # an empty list would mean every target of the account
        return self._scaling("describe_scalable_targets", "ScalableTargets", ResourceIds=resources)

    def _of_targets(self, operation: str, key: str, resources: list[str]) -> list[dict[str, Any]]:
        return [
            each
            for resource in dict.fromkeys(resources)
            for each in self._scaling(operation, key, ResourceId=resource)
        ]

    def _scaling(self, operation: str, key: str, **arguments: Any) -> list[dict[str, Any]]:
        pages = self._client("application-autoscaling").get_paginator(operation)
        action = "".join(part.title() for part in operation.split("_"))
        return (
            self._asked(
                f"application-autoscaling:{action}",
                lambda: [
                    each
                    for page in pages.paginate(ServiceNamespace=_NAMESPACE, **arguments)
                    for each in page[key]
                ],
            )
            or []
        )

    def _alarms(self, endpoint: dict[str, Any], names: list[str]) -> list[dict[str, Any]]:
        rollback = endpoint.get("LastDeploymentConfig", {}).get("AutoRollbackConfiguration", {})
        undoing = {each["AlarmName"] for each in rollback.get("Alarms", ())}

        def read() -> Iterator[dict[str, Any]]:
            # CloudWatch finds alarms by one metric at a time only: the account's are all read.
            for page in self._client("cloudwatch").get_paginator("describe_alarms").paginate():
                for alarm in page["MetricAlarms"]:
                    if alarm["AlarmName"] in undoing or any(watches(alarm, name) for name in names):
                        yield alarm

        return self._asked("cloudwatch:DescribeAlarms", lambda: list(read())) or []

    def _tags(self, sagemaker: Any, endpoint: dict[str, Any]) -> dict[str, str]:
        if not endpoint:
            return {}

        def read() -> dict[str, str]:
            pages = sagemaker.get_paginator("list_tags").paginate(
                ResourceArn=endpoint["EndpointArn"]
            )
            return {tag["Key"]: tag["Value"] for page in pages for tag in page["Tags"]}

        return self._asked("sagemaker:ListTags", read) or {}

    def _log_group(self) -> dict[str, Any] | None:
        name = f"{_LOG_GROUPS}{self._name}"

        def read() -> dict[str, Any] | None:
            pages = (
                self._client("logs")
                .get_paginator("describe_log_groups")
                .paginate(logGroupNamePrefix=name)
            )
            groups = (each for page in pages for each in page["logGroups"])
            return next((each for each in groups if each["logGroupName"] == name), None)

        found: dict[str, Any] | None = self._asked("logs:DescribeLogGroups", read)
        return found

    def _package(self, address: str) -> Package:
        return read_package(self._client("s3"), address)
