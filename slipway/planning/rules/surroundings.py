"""Rules about what an endpoint writes, reads and reserves beside its instances.

Sources of the rules about metrics, read 2026-11-25:
https://docs.aws.amazon.com/sagemaker/latest/dg/monitoring-cloudwatch-enhanced-metrics.html and
https://docs.aws.amazon.com/sagemaker/latest/dg/monitoring-cloudwatch-detailed-observability.html

An endpoint uses exactly one training plan, and the variant's instance type is the plan's:
https://docs.aws.amazon.com/sagemaker/latest/dg/use-training-plan-for-inference-endpoints-using-api-cli-sdk.html,
read 2026-11-24.
"""

from collections.abc import Iterator
from typing import Any

from slipway.codes.code import Code
from slipway.config.alarm_kinds import MACHINES
from slipway.config.sections.alarms import ALARM_KINDS
from slipway.config.sections.keys import is_of_region
from slipway.errors import Problem
from slipway.planning.deployment import Deployment, Rule, problem


def captured_data_has_an_end(deployment: Deployment) -> Iterator[Problem]:
    """Requests may hold personal data, so the artifact bucket does not keep them for ever."""
    capture, environment = deployment.config.endpoint.data_capture, deployment.environment
    if capture is None or capture.destination is not None:
        return
    if environment.captured_data_days is None:
        yield problem(
            Code.DATA_CAPTURE,
            f"environment `{environment.name}` does not say how long captured data stays in the "
            "artifact bucket",
            "Set `captured_data_days` in environments.yaml, or `destination` to a prefix of "
            "another bucket.",
            ("endpoint", "data_capture"),
        )


def capture_key_has_a_destination(deployment: Deployment) -> Iterator[Problem]:
    """Refuses a key in the artifact bucket, where captured data has the artifact key."""
    capture = deployment.config.endpoint.data_capture
    if capture is not None and capture.key_arn is not None and capture.destination is None:
        yield problem(
            Code.DATA_CAPTURE,
            "`key_arn` has no effect without `destination`: the artifact key encrypts what lies in "
            "the artifact bucket",
            "Add `destination`, or leave `key_arn` out.",
            ("endpoint", "data_capture", "key_arn"),
        )


_FREQUENCY = ("endpoint", "metrics", "publish_frequency_seconds")
_PERIOD_SECONDS = 60
_AT_MOST_A_MINUTE = "Set `publish_frequency_seconds` to 10, 30 or 60"


def requests_are_counted_each_minute(deployment: Deployment) -> Iterator[Problem]:
    """Alarms and autoscaling read the metrics of requests in periods of a minute.

    A minute without a value is no failure, so several minutes in a row would never be too bad.
    """
    metrics = deployment.config.endpoint.metrics
    if metrics is None or not metrics.enhanced:
        return
    if metrics.publish_frequency_seconds > _PERIOD_SECONDS:
        yield problem(
            Code.METRICS,
            f"with `enhanced`, the metrics of requests come every "
            f"{metrics.publish_frequency_seconds} seconds, and alarms read them every minute",
            f"{_AT_MOST_A_MINUTE}, or `enhanced` to false.",
            _FREQUENCY,
        )


def machines_are_measured_each_minute(deployment: Deployment) -> Iterator[Problem]:
    """Alarms and autoscaling read the metrics of machines in periods of a minute."""
    config = deployment.config
    metrics = config.endpoint.metrics
    if metrics is None or metrics.publish_frequency_seconds <= _PERIOD_SECONDS:
        return
    readers = [
        f"alarms.{kind.field}"
        for kind in ALARM_KINDS.values()
        if kind.watch.group is MACHINES and config.alarms.threshold(kind) is not None
    ]
    if config.autoscaling and config.autoscaling.target_gpu_utilization_percent is not None:
        readers.append("autoscaling.target_gpu_utilization_percent")
    for reader in readers:
        yield problem(
            Code.METRICS,
            f"the metrics of machines come every {metrics.publish_frequency_seconds} seconds, and "
            f"`{reader}` reads them every minute",
            f"{_AT_MOST_A_MINUTE}, or remove `{reader}`.",
            _FREQUENCY,
        )


def role_is_of_the_account(deployment: Deployment) -> Iterator[Problem]:
    """Nobody can pass a role of another account to SageMaker.

    A role can only be passed to a service of its own account:
    https://docs.aws.amazon.com/IAM/latest/UserGuide/id_roles_use_passrole.html, read 2026-11-25.
    """
    arn, environment = deployment.config.endpoint.execution_role_arn, deployment.environment
    if arn is not None and (account := arn.split(":")[4]) != environment.account:
        yield problem(
            Code.EXECUTION_ROLE_ELSEWHERE,
            f"the role belongs to account {account}, and `{environment.name}` is in "
            f"{environment.account}",
            f"Name a role of {environment.account} under `environments: {environment.name}:`.",
            ("endpoint", "execution_role_arn"),
        )


def _is_of_the_region(*field: str) -> Rule:
    """Returns the rule of one key: EBS, S3, KMS and SNS use keys of their own Region alone.

    https://docs.aws.amazon.com/ebs/latest/userguide/ebs-encryption.html and
    https://docs.aws.amazon.com/AmazonS3/latest/userguide/UsingKMSEncryption.html (2026-11-24)
    """

    def rule(deployment: Deployment) -> Iterator[Problem]:
        environment = deployment.environment
        key: Any = deployment.config
        for name in field:
            key = getattr(key, name, None)
        if key is not None and not is_of_region(key, environment.region):
            yield problem(
                Code.KEY_ELSEWHERE,
                f"the key is in {key.split(':')[3]}, and the endpoint of `{environment.name}` in "
                f"{environment.region}",
                f"Name a key of {environment.region} under `environments: {environment.name}:`.",
                field,
            )

    return rule


# A rule of each key, so that one with an invalid value hides no other.
volume_key_is_near = _is_of_the_region("endpoint", "volume_key_arn")
dump_key_is_near = _is_of_the_region("endpoint", "core_dump", "key_arn")
capture_key_is_near = _is_of_the_region("endpoint", "data_capture", "key_arn")
input_key_is_near = _is_of_the_region("endpoint", "async_inference", "input_key_arn")
output_key_is_near = _is_of_the_region("endpoint", "async_inference", "output_key_arn")
topic_key_is_near = _is_of_the_region("endpoint", "async_inference", "topic_key_arn")


def vpc_has_a_security_group(deployment: Deployment) -> Iterator[Problem]:
    """SageMaker takes no VPC without a security group."""
    vpc = deployment.config.endpoint.vpc
    if vpc is None or vpc.security_group_ids or deployment.environment.network is not None:
        return
    yield problem(
        Code.NETWORK,
        "the VPC has no security group, and environment "
        f"`{deployment.environment.name}` has no `network` that gives one",
        "Add `security_group_ids`, or a `network` to the environment in environments.yaml.",
        ("endpoint", "vpc", "security_group_ids"),
    )


def ids_are_named_once(deployment: Deployment) -> Iterator[Problem]:
    """SageMaker counts subnets and groups against its limits, so a repeated id is a mistake."""
    vpc = deployment.config.endpoint.vpc
    if vpc is None:
        return
    for name, ids in (
        ("subnet_ids", vpc.subnet_ids),
        ("security_group_ids", vpc.security_group_ids),
    ):
        for repeated in dict.fromkeys(one for one in ids if ids.count(one) > 1):
            message = f"{repeated} is listed twice"
            remedy = "Remove one of them."
            yield problem(Code.NETWORK, message, remedy, ("endpoint", "vpc", name))


def reservation_has_one_type(deployment: Deployment) -> Iterator[Problem]:
    """The plan reserves instances of one type, and a pool names several."""
    endpoint = deployment.config.endpoint
    if endpoint.capacity_reservation_arn is not None and len(endpoint.instances) > 1:
        yield problem(
            Code.CAPACITY_RESERVATION,
            f"the reservation is of one instance type, and there are {len(endpoint.instances)}",
            "Name the reserved type alone.",
            ("endpoint", "instances"),
        )


def reservation_has_one_variant(deployment: Deployment) -> Iterator[Problem]:
    """An endpoint uses one plan, and AWS does not say how variants would share it."""
    endpoint = deployment.config.endpoint
    if endpoint.capacity_reservation_arn is None:
        return
    for name in ("variants", "shadow"):
        if getattr(endpoint, name):
            message = f"a reservation serves one variant, and `{name}` adds others"
            remedy = f"Remove `{name}`, or the reservation."
            yield problem(Code.CAPACITY_RESERVATION, message, remedy, ("endpoint", name))


def reservation_is_of_the_region(deployment: Deployment) -> Iterator[Problem]:
    """Capacity is reserved in one region."""
    arn, environment = deployment.config.endpoint.capacity_reservation_arn, deployment.environment
    if arn is not None and (region := arn.split(":")[3]) != environment.region:
        yield problem(
            Code.CAPACITY_RESERVATION,
            f"the reservation is in {region}, and the endpoint of `{environment.name}` in "
            f"{environment.region}",
            f"Name one of {environment.region} under `environments: {environment.name}:`.",
            ("endpoint", "capacity_reservation_arn"),
        )


_LACKS = {"ssm_access": "has no Systems Manager", "core_dump": "writes no core dumps"}


def sessions_reach_the_container(deployment: Deployment) -> Iterator[Problem]:
    """Refuses sessions that AWS does not start, or ignores.

    Sources, read 2026-11-29: https://docs.aws.amazon.com/sagemaker/latest/dg/ssm-access.html, and
    Terraform's aws_sagemaker_endpoint_configuration for inference components.
    """
    endpoint, field = deployment.config.endpoint, ("endpoint", "ssm_access")
    if endpoint.ssm_access and endpoint.network_isolation:
        message = "SageMaker starts no session in a container with network isolation"
        remedy = "Add `network_isolation: false`, or remove `ssm_access`."
        yield problem(Code.SSM_ACCESS, message, remedy, field)


def embedded_aws_has_it(deployment: Deployment) -> Iterator[Problem]:
    """Refuses settings that would have no effect on the embedded AWS."""
    environment = deployment.environment
    for name, lack in _LACKS.items() if environment.is_local else ():
        if getattr(deployment.config.endpoint, name):
            message = f"`{name}` has no effect in `{environment.name}`: the embedded AWS {lack}"
            remedy = f"Move `{name}` to an environment with an account, under `environments`."
            yield problem(Code.NOT_EMBEDDED, message, remedy, ("endpoint", name))


_FIELD = ("artifacts", "key_arn")


def key_is_of_an_isolated_model(deployment: Deployment) -> Iterator[Problem]:
    """Shared artifacts have the environment's key."""
    artifacts = deployment.config.artifacts
    if artifacts.key_arn is not None and not artifacts.isolated:
        yield problem(
            Code.ISOLATED_KEY,
            "`key_arn` has no effect without `isolated: true`: shared artifacts are encrypted with "
            "the environment's key",
            "Add `isolated: true`, or leave `key_arn` out.",
            _FIELD,
        )


def key_is_where_the_bucket_is(deployment: Deployment) -> Iterator[Problem]:
    """S3 encrypts with keys of the bucket's own Region alone.

    https://docs.aws.amazon.com/AmazonS3/latest/userguide/UsingKMSEncryption.html (2026-11-23). A
    key of another account would need a key policy that Slipway can neither write nor check.
    """
    environment, key = deployment.environment, deployment.config.artifacts.key_arn
    if key is None or not deployment.config.artifacts.isolated:
        return
    _, _, _, region, account, _ = key.split(":")
    remedy = (
        f"Name a key of {environment.account} in {environment.region} under `environments: "
        f"{environment.name}:`, or leave `key_arn` out: the stack then makes a key."
    )
    name = environment.name
    if region != environment.region:
        where = f"the artifact bucket of `{name}` in {environment.region}"
        message = f"the key is in {region}, and {where}"
    elif account != environment.account:
        where = f"environment `{name}` is {environment.account}"
        message = f"the key belongs to account {account}, and {where}"
    else:
        return
    yield problem(Code.KEY_ELSEWHERE, message, remedy, _FIELD)


def key_is_not_the_environments(deployment: Deployment) -> Iterator[Problem]:
    """Every role of the environment may decrypt with that one."""
    artifacts = deployment.config.artifacts
    if artifacts.isolated and artifacts.key_arn == deployment.environment.artifact_key_arn:
        if artifacts.key_arn is None:
            return
        message = "the key is the environment's own, with which every model's role may decrypt"
        remedy = "Name another key, or leave `key_arn` out: the stack then makes a key."
        yield problem(Code.ISOLATED_KEY, message, remedy, _FIELD)


ISOLATION = (
    key_is_of_an_isolated_model,
    key_is_where_the_bucket_is,
    key_is_not_the_environments,
)
"""The rules of a model whose artifacts have a key of their own, and of the stack that makes it."""

# Of EndpointName in SageMaker's API. Without a project the limits of a model's and an environment's
# name keep within it.
_LONGEST_ENDPOINT_NAME = 63


def endpoint_name_fits(deployment: Deployment) -> Iterator[Problem]:
    """A project, a model and an environment make one name, which SageMaker limits."""
    environment = deployment.environment
    name = environment.stack_name(deployment.config.name)
    excess = len(name) - _LONGEST_ENDPOINT_NAME
    if excess > 0:
        yield problem(
            Code.NAME_TOO_LONG,
            f"the endpoint {name} would have {len(name)} characters, and SageMaker allows "
            f"{_LONGEST_ENDPOINT_NAME}",
            f"Shorten the model's name, or `project` or the environment's name in "
            f"environments.yaml, by {excess}.",
            ("name",),
        )
