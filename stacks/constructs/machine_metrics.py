"""The metrics of the machines behind endpoints and training jobs, and the right to publish them.

SageMaker publishes CPU, memory, disk and GPU use as the execution role. The role policies that AWS
lists for CreateModel and CreateTrainingJob therefore contain `cloudwatch:PutMetricData` and
`logs:DescribeLogStreams`. Without the first, these metrics never appear and nothing reports it.

Sources, read 2026-11-22:
https://docs.aws.amazon.com/sagemaker/latest/dg/sagemaker-roles.html (CreateModel API and
CreateTrainingJob API: Execution Role Permissions);
https://github.com/aws-samples/host-yolov8-on-sagemaker-endpoint/pull/26 (instance metrics of
endpoints are missing without it);
https://docs.aws.amazon.com/sagemaker/latest/dg/monitoring-cloudwatch.html (the namespaces).
"""

from aws_cdk import aws_iam as iam

TRAINING_JOBS = "/aws/sagemaker/TrainingJobs"
COPIES = "/aws/sagemaker/InferenceComponents"
"""The namespace of the copies of inference components."""


def may_publish(*namespaces: str) -> iam.PolicyStatement:
    """Returns the statement that lets SageMaker publish machine metrics in some namespaces."""
    return iam.PolicyStatement(
        sid="PublishMachineMetrics",
        actions=["cloudwatch:PutMetricData"],
        # PutMetricData has no resources, only a condition on the namespace.
        resources=["*"],
        conditions={
            "StringEquals": {
                "cloudwatch:namespace": namespaces[0] if len(namespaces) == 1 else list(namespaces)
            }
        },
    )
