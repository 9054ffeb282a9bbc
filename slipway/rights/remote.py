"""The rights of a publisher whose files move in a build of the account."""

from slipway.config.environments import Environment
from slipway.planning.artifact_place import FOUNDATION_ID
from slipway.planning.remote_place import RESULTS_PREFIX, SOURCES_PREFIX
from slipway.planning.statements import Statement, allow
from slipway.rights.statements import Place


def remote_statements(environment: Environment, place: Place) -> list[Statement]:
    """Returns the rights to send a source, run a build, and take its result."""
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
