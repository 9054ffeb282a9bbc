"""The rights of an execution role: all that SageMaker does as that role for one endpoint.

The stack gives them to the role that it makes. For an existing role, `slipway iam` prints them and
`slipway preflight` looks for them.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from slipway.config.alarm_kinds import MACHINES
from slipway.config.sections.endpoint import AsyncInference
from slipway.config.sections.keys import ARTIFACT_KEY
from slipway.config.sections.recording import CoreDump
from slipway.planning.artifact_place import CapturePlace
from slipway.planning.plan import DeploymentPlan
from slipway.planning.statements import (
    COPIES,
    Key,
    RolePolicy,
    Statement,
    allow,
    publish_metrics,
    pull_images,
    read_objects,
    use_key,
    write_logs_of_machines,
)
from slipway.s3_address import S3Address

# https://docs.aws.amazon.com/sagemaker/latest/dg/sagemaker-roles.html, "CreateModel API: Execution
# Role Permissions", read 2026-11-24. Its policy has no resources; they are narrowed as far as EC2
# has resources for these actions:
# https://docs.aws.amazon.com/service-authorization/latest/reference/list_amazonec2.html
_DESCRIBE = [
    "ec2:DescribeDhcpOptions",
    "ec2:DescribeNetworkInterfaces",
    "ec2:DescribeSecurityGroups",
    "ec2:DescribeSubnets",
    "ec2:DescribeVpcs",
]
_CHANGE = [
    "ec2:CreateNetworkInterfacePermission",
    "ec2:DeleteNetworkInterface",
    "ec2:DeleteNetworkInterfacePermission",
]


@dataclass(frozen=True)
class RoleContext:
    """What a plan does not know of its account; the key encrypts the artifacts.

    `alarm_prefix` begins the names of the model's alarms; it is empty if the stack is the model's
    own.
    """

    partition: str
    artifact_key: Key
    security_group_ids: tuple[str, ...] = ()
    alarm_prefix: str = ""


def execution_rights(plan: DeploymentPlan, context: RoleContext) -> list[RolePolicy]:
    """Returns the rights that every endpoint needs, and a policy for each setting of this one."""
    policies = [_serving(plan, context)]
    named = (image.credentials_function_arn for image in plan.every_image)
    if functions := dict.fromkeys(arn for arn in named if arn is not None):
        statement = allow("ReadRegistryCredentials", ["lambda:InvokeFunction"], *functions)
        policies.append(RolePolicy("PrivateRegistry", (statement,), {}))
    if plan.vpc is not None:
        policies.append(_vpc(plan, context))
    if plan.config.endpoint.volume_key_arn is not None:
        policies.append(_volume_key(plan.config.endpoint.volume_key_arn))
    if plan.capture is not None:
        policies.append(_capture(plan, plan.capture, context))
    if plan.config.endpoint.queue is not None:
        policies.append(_queue(plan.config.endpoint.queue, context))
    if plan.config.endpoint.core_dump is not None:
        policies.append(_core_dump(plan.config.endpoint.core_dump, context))
    if plan.config.endpoint.ssm_access:
        policies.append(_ssm_access())
    if plan.watched_stacks:
        policies.append(_rollback_alarms(plan, context))
    return policies


def _serving(plan: DeploymentPlan, context: RoleContext) -> RolePolicy:
    """Reads artifacts, pulls its images, writes one log group and machine metrics, and no more.

    The role also runs the copies of guests, with their images and log groups.

    The role may read the artifacts of every model that shares the place, or an isolated model's
    own. It does not name a single artifact. CloudFormation updates the role before the endpoint, so
    a digest in it would cut the running fleet off from its own weights during an update. The role
    cannot create log groups. Otherwise a container that ends late would create the deleted group
    again.
    """
    place, arn = plan.artifact_place, f"arn:{context.partition}"
    bucket = f"{arn}:s3:::{place.bucket}"
    repositories = dict.fromkeys(
        f"{arn}:ecr:{each.region}:{each.account}:repository/{each.repository}"
        for each in plan.every_image
        if each.private_registry is None
    )
    log_groups = [
        f"{arn}:logs:{plan.environment.region}:{plan.environment.account}:log-group:{name}:*"
        for name in (plan.log_group_name, *(guest.log_group_name for guest in plan.guests))
    ]
    copies = () if plan.component is None else (COPIES,)
    return RolePolicy(
        "Serving",
        (
            *read_objects("Artifacts", bucket, place.artifacts_prefix),
            use_key("DecryptArtifacts", ["kms:Decrypt"], context.artifact_key),
            *(pull_images("PullImage", *repositories) if repositories else ()),
            write_logs_of_machines(*log_groups),
            publish_metrics(MACHINES.namespace, *copies),
        ),
        {
            f"{bucket}/{place.artifacts_prefix}*": "A digest here would cut the running fleet off.",
            "*": "ECR's log-in token is the account's, and PutMetricData has no resources: "
            "its condition names the namespace.",
            **dict.fromkeys(log_groups, "SageMaker names the streams, one per instance."),
        },
    )


def _vpc(plan: DeploymentPlan, context: RoleContext) -> RolePolicy:
    """Attaches instances to exactly these subnets and security groups."""
    prefix = f"arn:{context.partition}:ec2:{plan.environment.region}:{plan.environment.account}"
    interfaces = f"{prefix}:network-interface/*"
    subnets = plan.vpc.subnet_ids if plan.vpc is not None else ()
    return RolePolicy(
        "Vpc",
        (
            allow("DescribeNetwork", _DESCRIBE, "*"),
            allow(
                "CreateNetworkInterfaces",
                ["ec2:CreateNetworkInterface"],
                interfaces,
                *(f"{prefix}:subnet/{subnet}" for subnet in subnets),
                *(f"{prefix}:security-group/{group}" for group in context.security_group_ids),
            ),
            allow("ChangeNetworkInterfaces", _CHANGE, interfaces),
        ),
        {
            "*": "EC2's calls that describe have no resources.",
            interfaces: "EC2 chooses the ids of network interfaces.",
        },
    )


def _volume_key(key_arn: str) -> RolePolicy:
    """Makes grants, with which EC2 attaches encrypted volumes.

    AWS documents the right for volume keys of jobs, and says of endpoints that the key must let the
    role use it. Sources, read 2026-11-24:
    https://docs.aws.amazon.com/sagemaker/latest/dg/sagemaker-roles.html, and CreateEndpointConfig
    in botocore 1.44.
    """
    return RolePolicy("VolumeKey", (allow("GrantVolumeKey", ["kms:CreateGrant"], key_arn),), {})


def _capture(plan: DeploymentPlan, capture: CapturePlace, context: RoleContext) -> RolePolicy:
    """Writes below the endpoint's own folder alone, and uses the key."""
    bucket = f"arn:{context.partition}:s3:::{capture.bucket}"
    folder = f"{bucket}/{capture.prefix}{plan.endpoint_name}/*"
    statements = [allow("WriteCaptured", ["s3:PutObject"], folder)]
    if capture.key is not None:
        key = context.artifact_key if capture.key == ARTIFACT_KEY else Key(capture.key)
        statements.append(use_key("EncryptCaptured", ["kms:GenerateDataKey"], key))
    return RolePolicy(
        "DataCapture",
        tuple(statements),
        {folder: "SageMaker makes folders of the variant and the hour."},
    )


def _core_dump(core_dump: CoreDump, context: RoleContext) -> RolePolicy:
    """Writes dumps, in parts where they are large, and uses their key.

    AWS names `kms:Encrypt` for the key (ProductionVariantCoreDumpConfig in botocore 1.44.5). S3
    wants the two other actions for a key and an upload in parts, as for the answers of a queue.
    """
    place = S3Address.of(core_dump.destination)
    dumps = f"arn:{context.partition}:s3:::{place.bucket}/{place.key}*"
    statements = [allow("WriteCoreDumps", ["s3:AbortMultipartUpload", "s3:PutObject"], dumps)]
    if core_dump.key_arn is not None:
        actions = ["kms:Decrypt", "kms:Encrypt", "kms:GenerateDataKey"]
        statements.append(allow("EncryptCoreDumps", actions, core_dump.key_arn))
    return RolePolicy(
        "CoreDump", tuple(statements), {dumps: "SageMaker names the objects of core dumps."}
    )


def _ssm_access() -> RolePolicy:
    """Connects the agent of Systems Manager, whose actions have no resources.

    https://docs.aws.amazon.com/sagemaker/latest/dg/ssm-access.html, read 2026-11-29.
    """
    channels = ("CreateControl", "CreateData", "OpenControl", "OpenData")
    connect = allow("ConnectSessions", [f"ssmmessages:{each}Channel" for each in channels], "*")
    reasons = {"*": "The channels of Systems Manager have no resources."}
    return RolePolicy("SsmAccess", (connect,), reasons)


def _queue(queue: AsyncInference, context: RoleContext) -> RolePolicy:
    """Reads requests, writes answers and failures, and tells the topics.

    AWS's page names the four actions on objects and topics. It names ListBucket too, for objects
    instead of buckets, where it has no effect. S3 wants both actions on a key for an upload in
    parts, and SNS wants both for a topic with a key. Sources, read 2026-11-24:
    https://docs.aws.amazon.com/sagemaker/latest/dg/async-inference-create-endpoint-prerequisites.html
    https://docs.aws.amazon.com/AmazonS3/latest/userguide/mpuAndPermissions.html
    https://docs.aws.amazon.com/sns/latest/dg/sns-key-management.html
    """
    s3 = f"arn:{context.partition}:s3:::"
    requests, *answers = (
        f"{s3}{each.bucket}/{each.key}*" for each in (S3Address.of(queue.input), *queue.written)
    )
    return RolePolicy(
        "AsyncInference",
        (
            allow("ReadRequests", ["s3:GetObject"], requests),
            allow("WriteAnswers", ["s3:AbortMultipartUpload", "s3:PutObject"], *answers),
            *_rights_to_topics_and_keys(queue),
        ),
        {
            requests: "Callers name the objects of their requests.",
            **dict.fromkeys(answers, "SageMaker names the objects of answers and failures."),
        },
    )


def _rights_to_topics_and_keys(queue: AsyncInference) -> Iterator[Statement]:
    if queue.topic_arns:
        yield allow("TellTopics", ["sns:Publish"], *queue.topic_arns)
    if queue.input_key_arn is not None:
        yield allow("DecryptRequests", ["kms:Decrypt"], queue.input_key_arn)
    both = ["kms:Decrypt", "kms:GenerateDataKey"]
    if queue.output_key_arn is not None:
        yield allow("EncryptAnswers", both, queue.output_key_arn)
    if queue.topic_key_arn is not None:
        yield allow("EncryptNotices", both, queue.topic_key_arn)


def _rollback_alarms(plan: DeploymentPlan, context: RoleContext) -> RolePolicy:
    """Reads the alarms that undo an update; without this right SageMaker watches none of them.

    AWS names the right for updates of endpoints. For updates of inference components it names none.
    DescribeAlarms without composite alarms takes alarms as resources. Sources, read 2026-11-28:
    https://docs.aws.amazon.com/sagemaker/latest/dg/deployment-guardrails-configuration.html
    https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_DescribeAlarms.html
    """
    environment = plan.environment
    prefix = f"arn:{context.partition}:cloudwatch:{environment.region}:{environment.account}:alarm"
    named = {plan.stack_name: context.alarm_prefix or f"{plan.stack_name}-"}
    alarms = [f"{prefix}:{named.get(stack, f'{stack}-')}*" for stack in plan.watched_stacks]
    return RolePolicy(
        "RollbackAlarms",
        (allow("WatchRollbackAlarms", ["cloudwatch:DescribeAlarms"], *alarms),),
        dict.fromkeys(alarms, "CloudFormation chooses how the names of a stack's alarms end."),
    )
