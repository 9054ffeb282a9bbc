"""A CDK app of three stacks, synthesised into one assembly per version of it.

Usage: three_stacks.py DIRECTORY VERSION...
"""

import sys

from aws_cdk import App, Environment, RemovalPolicy, Stack, Tags
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_logs as logs
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_sns as sns
from aws_cdk import aws_ssm as ssm

ENVIRONMENT = Environment(account="123456789012", region="us-east-1")

FLAGS = {"@aws-cdk/aws-s3:serverAccessLogsUseBucketPolicy": True}


def synthesise(directory: str, version: str) -> None:
    app = App(outdir=f"{directory}/{version}", context=FLAGS)
    storage = Stack(app, "storage", stack_name="storage-local", env=ENVIRONMENT)
    access_logs = s3.Bucket(
        storage,
        "AccessLogs",
        enforce_ssl=True,
        object_ownership=s3.ObjectOwnership.BUCKET_OWNER_ENFORCED,
        # It is never empty: deleting the other bucket is logged too.
        removal_policy=RemovalPolicy.RETAIN,
    )
    key = kms.Key(storage, "Key", enable_key_rotation=True, removal_policy=RemovalPolicy.DESTROY)
    artifacts = s3.Bucket(
        storage,
        "Artifacts",
        versioned=True,
        enforce_ssl=True,
        encryption=s3.BucketEncryption.KMS,
        encryption_key=key,
        server_access_logs_bucket=access_logs,
        server_access_logs_prefix="artifacts/",
        removal_policy=RemovalPolicy.DESTROY,
    )
    ssm.StringParameter(
        storage, "Name", parameter_name="/slipway/local/artifacts", string_value=version
    )

    notifications = Stack(app, "notifications", stack_name="notifications-local", env=ENVIRONMENT)
    topic = sns.Topic(notifications, "Topic", enforce_ssl=True)

    model = Stack(app, "model", stack_name="model-local", env=ENVIRONMENT)
    role = iam.Role(model, "Role", assumed_by=iam.ServicePrincipal("sagemaker.amazonaws.com"))
    artifacts.grant_read(role)
    log_group = logs.LogGroup(
        model,
        "Logs",
        log_group_name=f"/aws/sagemaker/Endpoints/model-{version}",
        retention=logs.RetentionDays.ONE_MONTH,
        removal_policy=RemovalPolicy.DESTROY,
    )
    log_group.grant_write(role)
    cloudwatch.CfnAlarm(
        model,
        "Alarm",
        comparison_operator="GreaterThanThreshold",
        evaluation_periods=1,
        namespace="AWS/SageMaker",
        metric_name="Invocation5XXErrors",
        statistic="Sum",
        period=60,
        threshold=1,
        alarm_actions=[topic.topic_arn],
    )
    ssm.StringParameter(
        model,
        "From",
        string_value=ssm.StringParameter.value_for_string_parameter(
            model, "/slipway/local/artifacts"
        ),
    )
    model.add_stack_dependency(storage)
    Tags.of(app).add("slipway:version", version)
    app.synth()


if __name__ == "__main__":
    for requested in sys.argv[2:]:
        synthesise(sys.argv[1], requested)
