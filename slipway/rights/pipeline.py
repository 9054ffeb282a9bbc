"""The least rights that a person or a pipeline needs for one model, as a policy of IAM.

Slipway's commands make the calls that are listed here, and nothing else; a test records them on the
embedded AWS. The CDK CLI itself only assumes the roles of `cdk bootstrap`, which hold the rights to
deploy. GetCallerIdentity, which every command of a real account begins with, needs no right.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from slipway.config.environments import Environment
from slipway.config.names import KEPT_LOGS
from slipway.config.sections.artifacts import HubWeights, PathWeights, S3Weights
from slipway.config.sections.endpoint import AsyncInference
from slipway.config.sections.keys import ARTIFACT_KEY
from slipway.planning.artifact_place import FOUNDATION_ID, ArtifactPlace
from slipway.planning.compiling import CompilePlan
from slipway.planning.plan import DeploymentPlan
from slipway.planning.remote_place import RESULTS_PREFIX, SOURCES_PREFIX
from slipway.planning.statements import Statement, allow, policy_document, read_objects
from slipway.planning.vpc import SECURITY_GROUP_ID
from slipway.rights.statements import Place, use_key, via_s3
from slipway.s3_address import S3Address

# What `cdk bootstrap` calls its roles, unless it is told another qualifier. `cdk diff` reads the
# deployed templates with the role `lookup`.
_BOOTSTRAP_QUALIFIER = "hnb659fds"
_BOOTSTRAP_ROLES = ("deploy-role", "file-publishing-role", "lookup-role")
# Repositories of the images that Slipway builds; users cannot list AWS's repositories.
_OURS = "slipway/"

Weights = HubWeights | S3Weights | PathWeights


def least_policy(
    plan: DeploymentPlan,
    environment: Environment,
    jobs: Sequence[tuple[CompilePlan | None, Weights | None]],
    *,
    remote: bool = False,
) -> dict[str, Any]:
    """Returns the policy to publish, deploy, invoke and operate one model.

    `jobs` are, for each model that is published, the training job that makes its artifact, and the
    weights that publishing fetches. Without weights files are published that were compiled before.
    With `remote`, builds of the account publish; their role then moves the files.
    """
    place = Place(environment)
    moving = remote_statements(environment, place)
    if not remote:
        moving = _merged(
            statement
            for compiling, weights in jobs
            for statement in (
                *_fetch(place, plan.artifact_place, weights, has_recipes=compiling is not None),
                *(_compile(plan, place, environment, compiling) if compiling else ()),
            )
        )
    statements = [
        *_publish(plan, place, environment, writes=not remote),
        *moving,
        allow(
            "Deploy",
            ["sts:AssumeRole"],
            *(
                f"arn:{place.partition}:iam::{place.account}:role/cdk-{_BOOTSTRAP_QUALIFIER}-"
                f"{role}-{place.account}-{place.region}"
                for role in _BOOTSTRAP_ROLES
            ),
        ),
        *invoke_statements(plan, place),
        *_operate(plan, place),
        *_read_captured(plan, place),
    ]
    return policy_document(statements)


def _merged(statements: Iterable[Statement]) -> list[Statement]:
    """Returns statements whose names differ: those of one name allow the same on other things."""
    found: dict[str, Statement] = {}
    for each in statements:
        resources = found[each.sid].resources if each.sid in found else ()
        found[each.sid] = replace(
            each, resources=tuple(dict.fromkeys((*resources, *each.resources)))
        )
    return list(found.values())


def _publish(
    plan: DeploymentPlan, place: Place, environment: Environment, *, writes: bool
) -> list[Statement]:
    """Reads what preflight and publish look for, and writes artifacts unless a build does."""
    artifacts = plan.artifact_place
    bucket = f"arn:{place.partition}:s3:::{artifacts.bucket}"
    # HeadBucket is allowed by it as well.
    own = [f"{artifacts.root}*", f"{artifacts.output_prefix}*"]
    own += [f"{artifacts.incoming_prefix}*"] * writes
    isolated = {"StringLike": {"s3:prefix": own}} if artifacts.is_isolated else {}
    statements = [
        allow("FindArtifacts", ["s3:ListBucket"], bucket, **isolated),
        allow(
            "WriteArtifacts" if writes else "ReadArtifacts",
            ["s3:GetObject", "s3:PutObject"] if writes else ["s3:GetObject"],
            f"{bucket}/{artifacts.artifacts_prefix}*",
            *[f"{bucket}/{artifacts.incoming_prefix}*"] * writes,
        ),
        use_key("UseArtifactKey", ["kms:Decrypt", "kms:GenerateDataKey"], place, artifacts),
        allow(
            "FindFoundation",
            ["ssm:GetParameter"],
            place.arn("ssm", f"parameter{artifacts.key_parameter}"),
            place.arn("ssm", f"parameter{environment.parameter_prefix}notification-topic-arn"),
            *(
                [place.arn("ssm", f"parameter{environment.parameter_prefix}{SECURITY_GROUP_ID}")]
                if plan.vpc is not None and not plan.vpc.security_group_ids
                else []
            ),
        ),
    ]
    if plan.config.endpoint.execution_role_arn is not None:
        calls = ["iam:GetRole", "iam:SimulatePrincipalPolicy"]
        statements.append(
            allow("ExamineExecutionRole", calls, plan.config.endpoint.execution_role_arn)
        )
    if plan.vpc is not None:
        # EC2's calls that describe have no resources.
        kinds = ("NetworkInterfaces", "RouteTables", "SecurityGroups", "Subnets")
        statements.append(allow("FindNetwork", [f"ec2:Describe{kind}" for kind in kinds], "*"))
    if plan.capture is not None and plan.capture.bucket != plan.artifact.bucket:
        captured = f"arn:{place.partition}:s3:::{plan.capture.bucket}"
        statements.append(allow("FindCaptureBucket", ["s3:ListBucket"], captured))
    if plan.config.endpoint.queue is not None:
        statements += find_queue(plan.config.endpoint.queue, place)
    if plan.config.endpoint.volume_key_arn is not None:
        calls = ["kms:DescribeKey", "kms:ListGrants"]
        statements.append(allow("FindVolumeKey", calls, plan.config.endpoint.volume_key_arn))
    ours = dict.fromkeys(
        place.arn("ecr", f"repository/{each.image.repository}")
        for each in plan.every_served
        if each.image.repository.startswith(_OURS)
    )
    if ours and not environment.is_local:
        actions = ["ecr:DescribeImages"]
        if environment.image_builds.repository_key is not None:
            actions.append("ecr:DescribeRepositories")
        statements.append(allow("FindImage", actions, *ours))
    return statements


def _fetch(
    place: Place, artifacts: ArtifactPlace, weights: Weights | None, *, has_recipes: bool
) -> list[Statement]:
    statements = []
    if isinstance(weights, S3Weights):
        source = S3Address.of(weights.uri)
        bucket = f"arn:{place.partition}:s3:::{source.bucket}"
        statements += [
            allow("FindWeights", ["s3:ListBucket"], bucket),
            allow("ReadWeights", ["s3:GetObject"], f"{bucket}/{source.key}*"),
        ]
    if has_recipes or isinstance(weights, HubWeights):
        recipes = f"arn:{place.partition}:s3:::{artifacts.bucket}/{artifacts.recipes_prefix}*"
        statements.append(allow("RememberRecipes", ["s3:GetObject", "s3:PutObject"], recipes))
    return statements


def _compile(
    plan: DeploymentPlan, place: Place, environment: Environment, compiling: CompilePlan
) -> list[Statement]:
    """Starts a training job, waits for it and takes what it made."""
    artifacts = plan.artifact_place
    bucket = f"arn:{place.partition}:s3:::{artifacts.bucket}"
    logs = place.arn("logs", "log-group:/aws/sagemaker/TrainingJobs")
    # CloudFormation names the role after its stack, of whose name it may keep 24 characters.
    name = f"{environment.stack_name(artifacts.stack_id)}-"[:24]
    role = f"arn:{place.partition}:iam::{place.account}:role/{name}*"
    statements = [
        allow("TakeCompiled", ["s3:GetObject"], f"{bucket}/{artifacts.output_prefix}*"),
        allow(
            "FindCompileRole",
            ["ssm:GetParameter"],
            place.arn("ssm", f"parameter{artifacts.compile_role_parameter}"),
        ),
        allow(
            "Compile",
            [
                "sagemaker:AddTags",
                "sagemaker:CreateTrainingJob",
                "sagemaker:DescribeTrainingJob",
            ],
            place.arn("sagemaker", "training-job/compile-*"),
        ),
        allow(
            "PassCompileRole",
            ["iam:PassRole"],
            role,
            StringEquals={"iam:PassedToService": "sagemaker.amazonaws.com"},
        ),
        allow(
            "ReadCompileLog", ["logs:DescribeLogStreams", "logs:GetLogEvents"], logs, f"{logs}:*"
        ),
    ]
    if environment.is_local or compiling.image.repository == plan.image.repository:
        return statements
    if compiling.image.repository.startswith(_OURS):
        repository = place.arn("ecr", f"repository/{compiling.image.repository}")
        statements.append(allow("FindCompiler", ["ecr:DescribeImages"], repository))
    return statements


def _read_captured(plan: DeploymentPlan, place: Place) -> Iterator[Statement]:
    """Reads what `slipway shadow-report` compares."""
    if plan.capture is not None and plan.shadow is not None:
        bucket, folder = S3Address.of(f"{plan.capture.uri}/{plan.endpoint_name}/")
        yield from read_objects("Captured", f"arn:{place.partition}:s3:::{bucket}", folder)
        if (key := plan.capture.key) not in (None, ARTIFACT_KEY):
            yield allow("UseCaptureKey", ["kms:Decrypt"], key, **via_s3(place))


def _operate(plan: DeploymentPlan, place: Place) -> list[Statement]:
    """Reads what `slipway status` and `slipway leftovers` show."""
    endpoint = plan.endpoint_name
    groups = [
        place.arn("logs", f"log-group:{name}")
        for name in (plan.log_group_name, f"{KEPT_LOGS}{plan.stack_name}")
    ]
    return [
        allow(
            "ReadStack",
            [
                "cloudformation:DescribeStackEvents",
                "cloudformation:DescribeStackResources",
                "cloudformation:DescribeStacks",
                "cloudformation:GetTemplate",
                "cloudformation:ListStackResources",
            ],
            place.arn("cloudformation", f"stack/{plan.stack_name}/*"),
        ),
        allow(
            "ReadEndpoint",
            ["sagemaker:DescribeEndpoint"],
            place.arn("sagemaker", f"endpoint/{endpoint}"),
        ),
        *(
            [allow("ReadComponent", ["sagemaker:DescribeInferenceComponent"], *component)]
            if (component := component_arns(plan, place))
            else ()
        ),
        allow(
            "ReadConfigsAndModels",
            [
                "sagemaker:DescribeEndpointConfig",
                "sagemaker:DescribeModel",
                "sagemaker:ListTags",
            ],
            # CloudFormation chooses their names.
            place.arn("sagemaker", "endpoint-config/*"),
            place.arn("sagemaker", "model/*"),
        ),
        allow(
            "ListWhatHasNoNarrowerResource",
            [
                "application-autoscaling:DescribeScalableTargets",
                "application-autoscaling:DescribeScalingPolicies",
                # Which alarm undid a rollout, after it is over.
                *(["cloudwatch:DescribeAlarmHistory"] if plan.rollout else []),
                "application-autoscaling:DescribeScheduledActions",
                "cloudwatch:DescribeAlarms",
                "cloudwatch:GetMetricData",
                # Which of them still exist, of those that made interfaces and grants.
                *(["iam:ListRoles"] if plan.vpc or plan.config.endpoint.volume_key_arn else []),
                "logs:DescribeLogGroups",
                "sagemaker:ListEndpointConfigs",
                "sagemaker:ListEndpoints",
                "sagemaker:ListInferenceComponents",
                "sagemaker:ListModels",
                "servicequotas:ListAWSDefaultServiceQuotas",
                "servicequotas:ListServiceQuotas",
            ],
            "*",
        ),
        allow(
            "ReadLog",
            ["logs:DescribeLogStreams", "logs:FilterLogEvents", "logs:GetLogEvents"],
            *(f"{group}{rest}" for group in groups for rest in ("", ":*")),
        ),
    ]


def find_queue(queue: AsyncInference, place: Place) -> list[Statement]:
    """Returns the rights with which preflight looks for everything that a queue needs.

    They let a caller tell an answer that does not exist yet from one that is closed, too.
    """
    buckets = (f"arn:{place.partition}:s3:::{bucket}" for bucket in queue.buckets)
    statements = [allow("FindQueueBuckets", ["s3:ListBucket"], *buckets)]
    if queue.topic_arns:
        statements.append(allow("FindTopics", ["sns:GetTopicAttributes"], *queue.topic_arns))
    if queue.key_arns:
        statements.append(allow("FindQueueKeys", ["kms:DescribeKey"], *queue.key_arns))
    return statements


def use_queue(queue: AsyncInference, place: Place) -> list[Statement]:
    s3 = f"arn:{place.partition}:s3:::"
    requests = S3Address.of(queue.input)
    answers = (f"{s3}{prefix.bucket}/{prefix.key}*" for prefix in queue.written)
    statements = [
        allow("PutRequests", ["s3:PutObject"], f"{s3}{requests.bucket}/{requests.key}*"),
        allow("ReadAnswers", ["s3:GetObject"], *answers),
    ]
    if queue.input_key_arn is not None:
        statements.append(allow("EncryptRequests", ["kms:GenerateDataKey"], queue.input_key_arn))
    if queue.output_key_arn is not None:
        statements.append(allow("DecryptAnswers", ["kms:Decrypt"], queue.output_key_arn))
    return statements


def invoke_statements(plan: DeploymentPlan, place: Place) -> list[Statement]:
    """Asks the endpoint; an asynchronous one with the objects of requests and answers."""
    endpoint = place.arn("sagemaker", f"endpoint/{plan.endpoint_name}")
    if plan.config.endpoint.queue is None:
        actions = ["sagemaker:InvokeEndpoint", "sagemaker:InvokeEndpointWithResponseStream"]
        return [allow("Invoke", actions, endpoint, *component_arns(plan, place))]
    return [
        allow("Invoke", ["sagemaker:InvokeEndpointAsync"], endpoint),
        *use_queue(plan.config.endpoint.queue, place),
    ]


def component_arns(plan: DeploymentPlan, place: Place) -> list[str]:
    """Returns the ARN of the plan's inference component; none in another mode.

    Requests name the component beside the endpoint. Whether SageMaker checks it then is not
    documented, so the policy allows both by name.
    """
    if plan.component is None:
        return []
    return [place.arn("sagemaker", f"inference-component/{plan.component.name}")]


def remote_statements(environment: Environment, place: Place) -> list[Statement]:
    bucket = f"arn:{place.partition}:s3:::{environment.artifact_bucket}"
    project = place.arn("codebuild", f"project/{environment.publish_project}")
    # CloudFormation names the group after its stack and its logical id.
    stack = environment.stack_name(FOUNDATION_ID)
    group = place.arn("logs", f"log-group:{stack}-RemotePublishing*")
    return [
        allow("SendSource", ["s3:GetObject", "s3:PutObject"], f"{bucket}/{SOURCES_PREFIX}*"),
        allow("TakeResult", ["s3:GetObject"], f"{bucket}/{RESULTS_PREFIX}*"),
        allow(
            "PublishInABuild",
            [
                "codebuild:BatchGetBuilds",
                "codebuild:BatchGetProjects",
                "codebuild:ListBuildsForProject",
                "codebuild:StartBuild",
                "codebuild:StopBuild",
            ],
            project,
        ),
        allow("ReadBuildLog", ["logs:GetLogEvents"], group),
    ]
