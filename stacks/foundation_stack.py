"""The resources that the models of one environment share: artifact bucket, key, alarm topic.

Buckets and key outlive the stack, since a published artifact is readable only with both. A failed
creation deletes them, because their names would block the next attempt: therefore
`RetainExceptOnCreate`. A later foundation imports the buckets by their names. It cannot import the
key, whose id only AWS chooses (cloudformation-coverage-roadmap issue 2376, 2025-10-06), so the
environment names the key instead.
"""

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_sns as sns
from aws_cdk import aws_ssm as ssm
from constructs import Construct

from slipway.config.environments import Environment
from slipway.config.sections.keys import ARTIFACT_KEY
from slipway.planning.artifact_place import (
    CAPTURED_PREFIX,
    FOUNDATION_ID,
    INCOMING_PREFIX,
    OUTPUT_PREFIX,
    SHARED_ARTIFACTS,
    own_root,
    shared_place,
)
from slipway.planning.remote_place import REMOTE_PREFIX
from slipway.stacks.constructs.compile_role import CompileRole
from slipway.stacks.constructs.foundation_guard import FoundationGuard
from slipway.stacks.constructs.network import EndpointNetwork
from slipway.stacks.constructs.remote_publishing import RemotePublishingProject
from slipway.stacks.constructs.statements import limit_roles
from slipway.stacks.foundation_ids import (
    ARTIFACT_KEY_ARN,
    COMPILE_ROLE_ARN,
    NOTIFICATION_TOPIC_ARN,
    SECURITY_GROUP_ID,
    construct_id_of,
)

# The output of a job is copied from there into an artifact within minutes.
_COMPILE_OUTPUT_DAYS = 14
# Sources are sent anew where they are gone, and a result is taken when its build ends.
_REMOTE_PUBLISHING_DAYS = 14
# A publish that takes longer, or was stopped, sends anew what it had not copied by then.
_INCOMING_KEPT = cdk.Duration.days(1)
_KEPT = cdk.RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE


class FoundationStack(cdk.Stack):
    """One per environment, deployed first, destroyed last; the artifact bucket outlives it."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        environment: Environment,
        env: cdk.Environment,
    ) -> None:
        super().__init__(
            scope,
            construct_id,
            stack_name=environment.stack_name(FOUNDATION_ID),
            description=f"Slipway: what the models of {environment.name} share",
            env=env,
        )
        for name, value in environment.tags.items():
            cdk.Tags.of(self).add(name, value)
        limit_roles(self, environment.permissions_boundary_arn)
        key = self._key(environment)
        self._artifact_bucket(environment, key)
        topic = self._topic(environment, key)
        self._publish_id(environment, ARTIFACT_KEY_ARN, key.key_arn)
        self._publish_id(environment, NOTIFICATION_TOPIC_ARN, topic.topic_arn)
        compiling = CompileRole(
            self,
            "Compiling",
            environment=environment,
            artifact_key_arn=key.key_arn,
            place=shared_place(environment),
        )
        self._publish_id(environment, COMPILE_ROLE_ARN, compiling.role.role_arn)
        if environment.remote_publishing is not None:
            log_key = environment.log_key
            RemotePublishingProject(
                self,
                "RemotePublishing",
                environment=environment,
                settings=environment.remote_publishing,
                place=shared_place(environment),
                artifact_key_arn=key.key_arn,
                compile_role_arn=compiling.role.role_arn,
                log_key_arn=key.key_arn if log_key == ARTIFACT_KEY else log_key,
            )
        if environment.network is not None:
            network = EndpointNetwork(
                self, "Network", environment=environment, network=environment.network
            )
            if network.security_group_id is not None:
                self._publish_id(environment, SECURITY_GROUP_ID, network.security_group_id)
        shared = list(self.node.children)
        guard = FoundationGuard(self, "Guard", environment=environment)
        for construct in shared:
            construct.node.add_dependency(guard.request)

    def _key(self, environment: Environment) -> kms.IKey:
        if environment.artifact_key_arn is not None:
            return kms.Key.from_key_arn(self, "ArtifactKey", environment.artifact_key_arn)
        key = kms.Key(
            self,
            "ArtifactKey",
            description=f"Slipway: artifacts and notifications of {environment.name}",
            alias=environment.key_alias,
            enable_key_rotation=True,
            # Artifacts stay when the stack is deleted, and are unreadable without their key.
            removal_policy=_KEPT,
        )
        # CloudWatch can publish to an encrypted topic only if the key's policy allows it.
        key.add_to_resource_policy(
            iam.PolicyStatement(
                sid="AlarmsToEncryptedTopic",
                principals=[iam.ServicePrincipal("cloudwatch.amazonaws.com")],
                actions=["kms:Decrypt", "kms:GenerateDataKey*"],
                resources=["*"],
                conditions={"StringEquals": {"aws:SourceAccount": environment.account}},
            )
        )
        if readers := _readers(environment):
            # Through S3 alone, whose name has another ending in China. The readers' own policies
            # say which of their roles may.
            service = f"s3.{environment.region}.amazonaws.com*"
            key.add_to_resource_policy(
                iam.PolicyStatement(
                    sid="ArtifactReaders",
                    principals=readers,
                    actions=["kms:Decrypt"],
                    resources=["*"],
                    conditions={"StringLike": {"kms:ViaService": service}},
                )
            )
        # Whatever `log_key` says: otherwise log lines encrypted with this key before could not be
        # read.
        key.add_to_resource_policy(
            iam.PolicyStatement(
                sid="LogGroups",
                principals=[iam.ServicePrincipal(f"logs.{environment.region}.{self.url_suffix}")],
                # https://docs.aws.amazon.com/AmazonCloudWatch/latest/logs/encrypt-log-data-kms.html
                actions=[
                    "kms:Decrypt",
                    "kms:Describe*",
                    "kms:Encrypt",
                    "kms:GenerateDataKey*",
                    "kms:ReEncrypt*",
                ],
                resources=["*"],
                conditions={
                    "ArnLike": {
                        "kms:EncryptionContext:aws:logs:arn": f"arn:{self.partition}:logs:"
                        f"{environment.region}:{environment.account}:log-group:*"
                    }
                },
            )
        )
        return key

    def _artifact_bucket(self, environment: Environment, key: kms.IKey) -> None:
        access_logs = s3.Bucket(
            self,
            "AccessLogs",
            bucket_name=environment.access_log_bucket,
            encryption=s3.BucketEncryption.S3_MANAGED,
            block_public_access=s3.BlockPublicAccess.BLOCK_ALL,
            enforce_ssl=True,
            versioned=True,
            removal_policy=_KEPT,
            # Deleted logs can be restored for a week; S3 removes delete markers that are left over.
            lifecycle_rules=[
                s3.LifecycleRule(
                    expiration=cdk.Duration.days(90),
                    noncurrent_version_expiration=cdk.Duration.days(7),
                )
            ],
        )
        expiring = {OUTPUT_PREFIX: _COMPILE_OUTPUT_DAYS}
        if environment.remote_publishing is not None:
            expiring[REMOTE_PREFIX] = _REMOTE_PUBLISHING_DAYS
        if environment.captured_data_days is not None:
            expiring[CAPTURED_PREFIX] = environment.captured_data_days
        prefix = SHARED_ARTIFACTS
        # By literal name, so that the permission can come before the bucket that logs: with a
        # reference the two would wait for each other.
        access_logs.add_to_resource_policy(
            iam.PolicyStatement(
                sid="AccessLogDelivery",
                principals=[iam.ServicePrincipal("logging.s3.amazonaws.com")],
                actions=["s3:PutObject"],
                resources=[access_logs.arn_for_objects(f"{prefix}*")],
                conditions={
                    "ArnLike": {
                        "aws:SourceArn": f"arn:{self.partition}:s3:::{environment.artifact_bucket}"
                    },
                    "StringEquals": {"aws:SourceAccount": environment.account},
                },
            )
        )
        artifacts = s3.Bucket(
            self,
            "Artifacts",
            bucket_name=environment.artifact_bucket,
            encryption=s3.BucketEncryption.KMS,
            encryption_key=key,
            bucket_key_enabled=True,
            block_public_access=s3.BlockPublicAccess.BLOCK_ALL,
            enforce_ssl=True,
            versioned=True,
            removal_policy=_KEPT,
            # Published artifacts never expire: an older lock must still deploy.
            lifecycle_rules=[
                s3.LifecycleRule(
                    abort_incomplete_multipart_upload_after=cdk.Duration.days(7),
                    noncurrent_version_expiration=cdk.Duration.days(30),
                ),
                *(
                    s3.LifecycleRule(prefix=prefix, expiration=cdk.Duration.days(days))
                    for prefix, days in expiring.items()
                ),
                # Copies of what is in artifacts by then. So a publisher needs no right to delete.
                s3.LifecycleRule(
                    prefix=INCOMING_PREFIX,
                    expiration=_INCOMING_KEPT,
                    noncurrent_version_expiration=_INCOMING_KEPT,
                    abort_incomplete_multipart_upload_after=_INCOMING_KEPT,
                ),
            ],
        )
        _write_once(artifacts)
        if readers := _readers(environment):
            self._let_read(artifacts, environment, readers)
        resource = artifacts.node.default_child
        assert isinstance(resource, s3.CfnBucket)  # noqa: S101  # for the type checker
        resource.logging_configuration = s3.CfnBucket.LoggingConfigurationProperty(
            destination_bucket_name=access_logs.bucket_name, log_file_prefix=prefix
        )
        if access_logs.policy is not None:
            artifacts.node.add_dependency(access_logs.policy)

    def _let_read(
        self, artifacts: s3.Bucket, environment: Environment, readers: list[iam.IPrincipal]
    ) -> None:
        place = shared_place(environment)
        # Without the right to list, S3 answers 403 for a file that is not there. A condition on the
        # prefix would take that right away, because such a request has none.
        artifacts.add_to_resource_policy(
            iam.PolicyStatement(
                sid="ArtifactReadersList",
                principals=readers,
                actions=["s3:ListBucket"],
                resources=[artifacts.bucket_arn],
            )
        )
        artifacts.add_to_resource_policy(
            iam.PolicyStatement(
                sid="ArtifactReadersRead",
                principals=readers,
                actions=["s3:GetObject"],
                resources=[
                    artifacts.arn_for_objects(f"{prefix}*")
                    for prefix in (place.artifacts_prefix, place.recipes_prefix)
                ],
            )
        )

    def _topic(self, environment: Environment, key: kms.IKey) -> sns.Topic:
        topic = sns.Topic(self, "Notifications", master_key=key, enforce_ssl=True)
        topic.add_to_resource_policy(
            iam.PolicyStatement(
                sid="AlarmsOfThisAccount",
                principals=[iam.ServicePrincipal("cloudwatch.amazonaws.com")],
                actions=["sns:Publish"],
                resources=[topic.topic_arn],
                conditions={"StringEquals": {"aws:SourceAccount": environment.account}},
            )
        )
        for index, address in enumerate(environment.notification_emails):
            sns.CfnSubscription(
                self,
                f"Notification{index}",
                topic_arn=topic.topic_arn,
                protocol="email",
                endpoint=address,
            )
        return topic

    def _publish_id(self, environment: Environment, name: str, value: str) -> None:
        ssm.CfnParameter(
            self,
            construct_id_of(name),
            name=f"{environment.parameter_prefix}{name}",
            type="String",
            value=value,
        )


def _write_once(artifacts: s3.Bucket) -> None:
    """Denies each write under `artifacts/` that would overwrite an object.

    Versions alone keep what is overwritten, and Object Lock too: an endpoint's next instance would
    still download the newest. Object Lock would also keep `slipway prune` from deleting.
    Parts of an upload have no conditions, so only what makes an object is denied:
    https://docs.aws.amazon.com/AmazonS3/latest/userguide/conditional-writes-enforce.html
    """
    prefixes = (SHARED_ARTIFACTS, f"{own_root('*')}{SHARED_ARTIFACTS}")
    # Publishing an artifact again renews its manifest, so that `slipway prune` sees that it is in
    # use. Such a request names the ETag of the present manifest.
    for sid, path, lacking in (
        ("FilesWriteOnce", "*/files/*", ("s3:if-none-match",)),
        ("ManifestsByETag", "*", ("s3:if-none-match", "s3:if-match")),
    ):
        artifacts.add_to_resource_policy(
            iam.PolicyStatement(
                sid=sid,
                effect=iam.Effect.DENY,
                principals=[iam.AnyPrincipal()],
                actions=["s3:PutObject"],
                resources=[artifacts.arn_for_objects(f"{prefix}{path}") for prefix in prefixes],
                conditions={
                    "Null": dict.fromkeys(lacking, "true"),
                    "Bool": {"s3:ObjectCreationOperation": "true"},
                },
            )
        )


def _readers(environment: Environment) -> list[iam.IPrincipal]:
    return [iam.AccountPrincipal(account) for account in environment.artifact_readers]
