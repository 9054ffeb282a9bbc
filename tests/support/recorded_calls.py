"""Records the calls of boto3's clients, and holds them against a policy of IAM."""

import fnmatch
from collections.abc import Iterator, Mapping
from typing import Any

from slipway.access import Access

Call = tuple[str, str]

# Where IAM's name of the action is not the operation's.
_ACTIONS = {
    "s3:HeadBucket": "s3:ListBucket",
    "s3:ListObjectsV2": "s3:ListBucket",
    "s3:HeadObject": "s3:GetObject",
    "s3:CopyObject": "s3:PutObject",
    "s3:CreateMultipartUpload": "s3:PutObject",
    "s3:UploadPart": "s3:PutObject",
    "s3:UploadPartCopy": "s3:PutObject",
    "s3:CompleteMultipartUpload": "s3:PutObject",
    "s3:DeleteObjects": "s3:DeleteObject",
    "s3:ListMultipartUploads": "s3:ListBucketMultipartUploads",
}
# https://docs.aws.amazon.com/STS/latest/APIReference/API_GetCallerIdentity.html: needs no right.
_FREE = {"sts:GetCallerIdentity"}
_SERVICES = {"sagemaker-runtime": "sagemaker", "service-quotas": "servicequotas"}
# The parameter that is the ARN of an operation's resource.
_ARNS = {
    "sagemaker:ListTags": "ResourceArn",
    "cloudformation:GetTemplate": "StackName",
    "kms:DescribeKey": "KeyId",
    "kms:ListGrants": "KeyId",
    "sns:GetTopicAttributes": "TopicArn",
}
# The form of a resource, by the service and the parameter that names it.
_RESOURCES = {
    ("ssm", "Name"): "parameter{}",
    ("sagemaker", "EndpointName"): "endpoint/{}",
    ("sagemaker", "EndpointConfigName"): "endpoint-config/{}",
    ("sagemaker", "InferenceComponentName"): "inference-component/{}",
    ("sagemaker", "ModelName"): "model/{}",
    ("sagemaker", "TrainingJobName"): "training-job/{}",
    ("cloudformation", "StackName"): "stack/{}/0",
    ("logs", "logGroupName"): "log-group:{}",
    ("ecr", "repositoryName"): "repository/{}",
    ("codebuild", "projectName"): "project/{}",
}
_STREAMS = {
    "logs:DescribeLogStreams": ":log-stream:",
    "logs:GetLogEvents": ":log-stream:one",
}
# The parameter that has the projects of an operation, or builds, which are named after theirs.
_PROJECTS = {
    "codebuild:BatchGetBuilds": "ids",
    "codebuild:BatchGetProjects": "names",
    "codebuild:StopBuild": "id",
}


class RecordedCalls:
    """What one access to an account asked of it, as IAM sees it.

    Only clients that it makes later are recorded. The place is region and account, as in an ARN.
    """

    def __init__(self, access: Access, place: str) -> None:
        self._place = place
        self.made: set[Call] = set()
        # boto3 has no public way to record every client that a session makes.
        access._session.events.register("before-parameter-build", self._record)

    def _record(self, params: Mapping[str, Any], model: Any, **_: Any) -> None:
        service = _SERVICES.get(model.service_model.service_name, model.service_model.service_name)
        self.made.update(self._calls(f"{service}:{model.name}", params))

    def _calls(self, operation: str, params: Mapping[str, Any]) -> Iterator[Call]:
        action = _ACTIONS.get(operation, operation)
        if operation.startswith("s3:"):
            bucket = f"arn:aws:s3:::{params['Bucket']}"
            if operation == "s3:DeleteObjects":
                for each in params["Delete"]["Objects"]:
                    yield action, f"{bucket}/{each['Key']}"
                return
            yield action, f"{bucket}/{params['Key']}" if "Key" in params else bucket
            # The bucket's default encryption has S3 ask for the key in the caller's name.
            if action == "s3:PutObject":
                yield "kms:GenerateDataKey", self._arn("kms", "key/0")
            if action == "s3:GetObject":
                yield "kms:Decrypt", self._arn("kms", "key/0")
            if operation in ("s3:CopyObject", "s3:UploadPartCopy"):
                copied = params["CopySource"]
                # boto3 has made `BUCKET/KEY` of it by now, or does so later.
                if not isinstance(copied, str):
                    copied = f"{copied['Bucket']}/{copied['Key']}"
                yield "s3:GetObject", f"arn:aws:s3:::{copied}"
            return
        of_arn = _ARNS.get(operation)
        if of_arn is not None and params[of_arn].startswith("arn:"):
            yield action, params[of_arn]
            return
        if (of_projects := _PROJECTS.get(operation)) is not None:
            given = params[of_projects]
            for each in given if isinstance(given, list) else [given]:
                yield action, self._arn("codebuild", f"project/{each.partition(':')[0]}")
            return
        service = operation.partition(":")[0]
        forms = ((name, _RESOURCES.get((service, name))) for name in params)
        named = [form.format(params[name]) for name, form in forms if form]
        stream = _STREAMS.get(operation, "")
        resource = self._arn(service, f"{named[0]}{stream}") if named else "*"
        yield action, resource
        if operation == "sagemaker:CreateTrainingJob":
            yield "iam:PassRole", params["RoleArn"]
            yield "sagemaker:AddTags", resource

    def _arn(self, service: str, resource: str) -> str:
        return f"arn:aws:{service}:{self._place}:{resource}"

    def denied_by(self, policy: Mapping[str, Any]) -> set[Call]:
        """Returns the recorded calls that a policy does not allow; conditions are not looked at."""
        asked = [call for call in self.made if call[0] not in _FREE]
        return {call for call in asked if not any(_allows(s, call) for s in _parts(policy))}

    def unused_of(self, policy: Mapping[str, Any]) -> set[tuple[str, str]]:
        return {
            (statement["Sid"], action)
            for statement in _parts(policy)
            for action in statement["Action"]
            if not any(call[0] == action and _allows(statement, call) for call in self.made)
        }


def _parts(policy: Mapping[str, Any]) -> list[dict[str, Any]]:
    statements: list[dict[str, Any]] = policy["Statement"]
    return statements


def _allows(statement: Mapping[str, Any], call: Call) -> bool:
    action, resource = call
    return action in statement["Action"] and any(
        fnmatch.fnmatchcase(resource, pattern) for pattern in statement["Resource"]
    )
