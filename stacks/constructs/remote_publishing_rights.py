"""The rights of a build that publishes: a publisher's, for every model of the environment."""

from slipway.config.environments import Environment
from slipway.config.sections.remote_publishing import RemotePublishing
from slipway.planning.artifact_place import ArtifactPlace
from slipway.planning.remote_place import RESULTS_PREFIX, SOURCES_PREFIX
from slipway.planning.statements import Statement, allow
from slipway.s3_address import S3Address

_JOBS_LOG = "/aws/sagemaker/TrainingJobs"


def publishing_statements(
    partition: str,
    environment: Environment,
    settings: RemotePublishing,
    place: ArtifactPlace,
    *,
    artifact_key_arn: str,
    compile_role_arn: str,
) -> tuple[list[Statement], dict[str, str]]:
    """Returns the statements of the build's role, and the reason of each wildcard in them."""
    bucket = f"arn:{partition}:s3:::{place.bucket}"
    here = f"{environment.region}:{environment.account}"
    jobs = f"arn:{partition}:sagemaker:{here}:training-job/compile-*"
    repositories = f"arn:{partition}:ecr:{here}:repository/{environment.repository_prefix}*"
    log = f"arn:{partition}:logs:{here}:log-group:{_JOBS_LOG}"
    prefixes = (place.artifacts_prefix, place.incoming_prefix, place.recipes_prefix)
    written = [f"{bucket}/{prefix}*" for prefix in prefixes]
    parameters = [
        f"arn:{partition}:ssm:{here}:parameter{name}"
        for name in (place.key_parameter, place.compile_role_parameter)
    ]
    statements = [
        allow(
            "FindArtifacts", ["s3:GetBucketAcl", "s3:GetBucketLocation", "s3:ListBucket"], bucket
        ),
        allow("WriteArtifacts", ["s3:GetObject", "s3:PutObject"], *written),
        allow(
            "ReadSource",
            ["s3:GetObject", "s3:GetObjectVersion"],
            f"{bucket}/{SOURCES_PREFIX}*",
        ),
        allow("WriteResult", ["s3:PutObject"], f"{bucket}/{RESULTS_PREFIX}*"),
        allow("TakeCompiled", ["s3:GetObject"], f"{bucket}/{place.output_prefix}*"),
        allow("UseArtifactKey", ["kms:Decrypt", "kms:GenerateDataKey"], artifact_key_arn),
        allow("FindFoundation", ["ssm:GetParameter"], *parameters),
        allow("FindCompiler", ["ecr:DescribeImages"], repositories),
        allow(
            "Compile",
            ["sagemaker:AddTags", "sagemaker:CreateTrainingJob", "sagemaker:DescribeTrainingJob"],
            jobs,
        ),
        allow(
            "PassCompileRole",
            ["iam:PassRole"],
            compile_role_arn,
            StringEquals={"iam:PassedToService": "sagemaker.amazonaws.com"},
        ),
        allow("ReadCompileLog", ["logs:DescribeLogStreams", "logs:GetLogEvents"], log, f"{log}:*"),
    ]
    reasons = {
        **dict.fromkeys(written, "Artifacts and recipes lie under their digests."),
        f"{bucket}/{SOURCES_PREFIX}*": "Sources lie under their digests.",
        f"{bucket}/{RESULTS_PREFIX}*": "Each build writes a file of its name.",
        f"{bucket}/{place.output_prefix}*": "Each job has a folder of its name.",
        jobs: "A job's name has its model and its inputs.",
        repositories: "Only the images that Slipway builds.",
        f"{log}:*": "SageMaker names the streams after the jobs.",
    }
    for number, uri in enumerate(settings.weights):
        source = S3Address.of(uri)
        objects = f"arn:{partition}:s3:::{source.bucket}/{source.key}*"
        statements += [
            allow(f"ReadWeights{number}", ["s3:GetObject"], objects),
            allow(
                f"FindWeights{number}",
                ["s3:ListBucket"],
                f"arn:{partition}:s3:::{source.bucket}",
                StringLike={"s3:prefix": f"{source.key}*"},
            ),
        ]
        reasons[objects] = "The environment names the prefix."
    if settings.key_arns:
        statements.append(allow("DecryptWeights", ["kms:Decrypt"], *settings.key_arns))
    if settings.hub_token_secret is not None:
        statements.append(
            allow("ReadToken", ["secretsmanager:GetSecretValue"], settings.hub_token_secret)
        )
    return statements, reasons
