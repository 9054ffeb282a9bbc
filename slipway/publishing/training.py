"""Training jobs that compile: started once for the same inputs, found again, waited for.

A job goes on when the command that started it is stopped. Its name is made of its inputs, so the
next run finds it, running or done; one that failed is followed by another attempt.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from slipway.access import Access, account_errors, existing
from slipway.codes.code import Code
from slipway.config.environments import Environment
from slipway.errors import UserError
from slipway.planning.compiling import SETTINGS_CHANNEL, CompilePlan
from slipway.planning.plan import ImagePlan
from slipway.publishing.progress import Progress

LOG_GROUP = "/aws/sagemaker/TrainingJobs"
WEIGHTS_CHANNEL = "weights"
# Job names have 63 characters: `compile-` MODEL `-` 12 digits of the inputs `-` attempt.
_MODEL_CHARACTERS = 36
_KEY_CHARACTERS = 12
_FIRST_PAUSE_SECONDS, _LAST_PAUSE_SECONDS = 0.5, 15.0
_LOG_LINES = 15
_UNDER_WAY = ("InProgress", "Stopping")
_FIELD = ("artifacts", "compile")


@dataclass(frozen=True)
class CompileJob:
    """One training job to be.

    `key` is a digest of everything that decides the result. The addresses of weights and settings
    have their final slash. SageMaker makes a folder for the job under `output_uri`.
    """

    model: str
    key: str
    plan: CompilePlan
    weights_uri: str
    settings_uri: str | None
    output_uri: str
    role_arn: str
    key_arn: str
    tags: Mapping[str, str]

    def name(self, attempt: int) -> str:
        """Returns the job's name; attempts count from 1."""
        model = self.model[:_MODEL_CHARACTERS].rstrip("-")
        name = f"compile-{model}-{self.key[:_KEY_CHARACTERS]}"
        return name if attempt == 1 else f"{name}-{attempt}"

    def request(self, attempt: int) -> dict[str, Any]:
        channels = [_channel(WEIGHTS_CHANNEL, self.weights_uri)]
        if self.settings_uri is not None:
            channels.append(_channel(SETTINGS_CHANNEL, self.settings_uri))
        return {
            "TrainingJobName": self.name(attempt),
            "AlgorithmSpecification": {
                "TrainingImage": self.plan.image.uri,
                "TrainingInputMode": "File",
                # Without ContainerEntrypoint these go to the image's own ENTRYPOINT, in place of
                # `train` and of its CMD: "docker run image <ContainerArguments>",
                # https://docs.aws.amazon.com/sagemaker/latest/dg/your-algorithms-training-algo-dockerfile.html
                # (read 2026-11-22).
                "ContainerArguments": list(self.plan.arguments),
            },
            "HyperParameters": dict(self.plan.hyperparameters),
            "InputDataConfig": channels,
            "OutputDataConfig": {
                "S3OutputPath": self.output_uri,
                "CompressionType": "NONE",
                "KmsKeyId": self.key_arn,
            },
            "ResourceConfig": {
                "InstanceType": self.plan.instance_type,
                "InstanceCount": 1,
                "VolumeSizeInGB": self.plan.volume_size_gb,
            },
            "StoppingCondition": {"MaxRuntimeInSeconds": self.plan.max_runtime_seconds},
            "RoleArn": self.role_arn,
            "EnableNetworkIsolation": True,
            "Tags": [{"Key": key, "Value": value} for key, value in sorted(self.tags.items())],
        }


class TrainingJobs:
    def __init__(self, access: Access, progress: Progress) -> None:
        self._client = access.client("sagemaker")
        self._logs = access.client("logs")
        self._progress = progress

    def finish(self, job: CompileJob, holds_output: Callable[[str], bool]) -> tuple[str, str]:
        """Starts the job, or finds the one that was started before, and waits until it is done.

        Returns the job's name, and the address of what it wrote, with the final slash.
        `holds_output` says whether there still is something under such an address. Raises
        `UserError` if the job cannot be started, or it failed, or was stopped.
        """
        attempt = 1
        while (found := self._describe(job.name(attempt))) is not None:
            status = found["TrainingJobStatus"]
            if status in _UNDER_WAY:
                self._progress.note(
                    f"The training job {job.name(attempt)} is under way since "
                    f"{found['CreationTime'].astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC."
                )
                return self._wait_for(job, job.name(attempt))
            if status == "Completed" and holds_output(output_uri(found)):
                self._progress.note(f"The training job {job.name(attempt)} was done before.")
                return job.name(attempt), output_uri(found)
            attempt += 1
        name = job.name(attempt)
        self._create(job, attempt)
        self._progress.note(
            f"The training job {name} compiles for {job.plan.target} on {job.plan.instance_type}. "
            f"Its log: {LOG_GROUP}, streams {name}/"
        )
        return self._wait_for(job, name)

    def _describe(self, name: str) -> dict[str, Any] | None:
        try:
            found: dict[str, Any] = self._client.describe_training_job(TrainingJobName=name)
        except ClientError as error:
            if _says_not_found(error):
                return None
            raise _denied(error) from None
        except BotoCoreError as error:
            raise _unreachable(name, error) from None
        return found

    def _create(self, job: CompileJob, attempt: int) -> None:
        try:
            self._client.create_training_job(**job.request(attempt))
        except ClientError as error:
            code = error.response["Error"]["Code"]
            if code == "ResourceInUse":
                return  # somebody else started the same at this moment
            raise _not_started(job, code, error) from None
        except BotoCoreError as error:
            raise _unreachable(job.name(attempt), error) from None

    def _wait_for(self, job: CompileJob, name: str) -> tuple[str, str]:
        pause = _FIRST_PAUSE_SECONDS
        try:
            while True:
                found = self._describe(name)
                if found is None:
                    raise UserError.of(
                        Code.JOB_STOPPED,
                        f"the training job {name} is gone",
                        "Run the command again.",
                    )
                elapsed = datetime.now(UTC) - found["CreationTime"]
                state = found.get("SecondaryStatus") or found["TrainingJobStatus"]
                self._progress.job(name, state, max(0.0, elapsed.total_seconds()))
                if found["TrainingJobStatus"] not in _UNDER_WAY:
                    break
                time.sleep(pause)
                pause = min(pause * 1.3, _LAST_PAUSE_SECONDS)
        except KeyboardInterrupt:
            self._progress.note(
                f"The training job {name} goes on. Run the command again to pick up what it makes; "
                f"`aws sagemaker stop-training-job --training-job-name {name}` stops it."
            )
            raise
        if found["TrainingJobStatus"] == "Completed":
            return name, output_uri(found)
        raise self._failure(job, name, found)

    def _failure(self, job: CompileJob, name: str, found: Mapping[str, Any]) -> UserError:
        code, what = Code.JOB_FAILED, "failed: "
        what += found.get("FailureReason") or "SageMaker gives no reason"
        remedy = "Correct the cause and run the command again. The whole log is in "
        remedy += f"{LOG_GROUP}, streams {name}/"
        if found.get("SecondaryStatus") == "MaxRuntimeExceeded":
            code, what = Code.JOB_TIMED_OUT, "was stopped after `max_runtime_seconds`, "
            what += f"{job.plan.max_runtime_seconds} seconds"
            remedy = "Raise `max_runtime_seconds`, or compile on a faster type."
        elif found["TrainingJobStatus"] == "Stopped":
            code, what = Code.JOB_STOPPED, "was stopped by somebody"
            remedy = "Run the command again to start another."
        message = f"the training job {name} {what}{self._last_lines(name)}"
        return UserError.of(code, message, remedy, field=_FIELD)

    def _last_lines(self, name: str) -> str:
        """Returns the end of a job's log for a report; says so where it cannot be read."""
        try:
            streams = self._logs.describe_log_streams(
                logGroupName=LOG_GROUP, logStreamNamePrefix=f"{name}/"
            )["logStreams"]
            if not streams:
                return "; it wrote no log"
            events = self._logs.get_log_events(
                logGroupName=LOG_GROUP,
                logStreamName=streams[0]["logStreamName"],
                limit=_LOG_LINES,
                startFromHead=False,
            )["events"]
        except ClientError as error:
            code = error.response["Error"]["Code"]
            if code == "ResourceNotFoundException":
                return "; it wrote no log"
            return f"; its log could not be read: {code}"
        except BotoCoreError as error:
            return f"; its log could not be read: {error}"
        lines = [event["message"].rstrip("\n") for event in events]
        return "; the end of its log:" + "".join(f"\n      {line}" for line in lines)


def _channel(name: str, uri: str) -> dict[str, Any]:
    return {
        "ChannelName": name,
        "CompressionType": "None",
        "InputMode": "File",
        "DataSource": {
            "S3DataSource": {
                "S3DataType": "S3Prefix",
                "S3Uri": uri,
                "S3DataDistributionType": "FullyReplicated",
            }
        },
    }


def output_uri(found: Mapping[str, Any]) -> str:
    """Returns the address of what a job wrote, with the final slash that a prefix needs."""
    uri: str = found["ModelArtifacts"]["S3ModelArtifacts"]
    return uri if uri.endswith("/") else f"{uri}/"


def parameter(access: Access, environment: Environment, path: str, stack_id: str) -> str:
    """Reads one of the ids that the foundation, or the stack of an isolated model, keeps in SSM.

    Raises `UserError` if it is not there: there is no such stack, or an older one.
    """
    with account_errors():
        found = existing(access.client("ssm").get_parameter, "ParameterNotFound", Name=path)
    if found is None:
        raise UserError.of(
            Code.FOUNDATION_MISSING,
            f"the SSM parameter {path} is not there",
            f"Run `cdk deploy {stack_id} -c env={environment.name}` first.",
        )
    return str(found["Parameter"]["Value"])


def require_image(access: Access, plan: CompilePlan, environment: Environment) -> None:
    """Checks that the compiler's image was built; a job without it would fail minutes later.

    AWS's own images are not checked, because their registry does not let users list them.
    """
    image = plan.image
    if not image.repository.startswith(environment.repository_prefix):
        return
    with account_errors():
        found = find_image(access, image)
    if found is None:
        family = image.repository.rpartition("/")[2]
        raise UserError.of(
            Code.IMAGE_MISSING,
            f"the compiler's image {image.uri} is not there",
            f"Run `cdk deploy image-{family} -c env={environment.name}` first; it builds it.",
        )


# Any: boto3's answer.
def find_image(access: Access, image: ImagePlan) -> Any:
    """Returns what ECR says of an image; None for an image that is not there."""
    return existing(
        access.client("ecr").describe_images,
        "ImageNotFoundException",
        "RepositoryNotFoundException",
        registryId=image.account,
        repositoryName=image.repository,
        imageIds=[{"imageTag": image.tag}],
    )


def _says_not_found(error: ClientError) -> bool:
    """Returns whether SageMaker's answer means that there is no such job.

    The API's model names another code for this.
    """
    detail = error.response["Error"]
    return detail["Code"] in ("ResourceNotFound", "ValidationException") and (
        "not found" in detail["Message"].lower() or "could not find" in detail["Message"].lower()
    )


def _not_started(job: CompileJob, code: str, error: ClientError) -> UserError:
    said, instance = error.response["Error"]["Message"], job.plan.instance_type
    if code == "ResourceLimitExceeded":
        return UserError.of(
            Code.QUOTA,
            f"no training job may run on {instance} in this account: {said}",
            f"Ask for more of `{instance} for training job usage` in Service Quotas, or name "
            "another type that it can compile on.",
            field=(*_FIELD, "instance"),
        )
    message = f"the training job could not be started: {code}: {said}"
    remedy = "Correct the cause and run the command again."
    if code in ("AccessDenied", "AccessDeniedException"):
        message = f"the training job may not be started: {said}"
        remedy = "Use credentials that may call sagemaker:CreateTrainingJob and pass "
        remedy += f"{job.role_arn}."
    return UserError.of(Code.JOB_NOT_STARTED, message, remedy, field=_FIELD)


def _denied(error: ClientError) -> UserError:
    return UserError.of(
        Code.JOB_UNREACHABLE,
        f"the state of the training job could not be read: {error.response['Error']['Message']}",
        "Use credentials that may call sagemaker:DescribeTrainingJob, then run the command again: "
        "a job that was started goes on.",
    )


def _unreachable(name: str, error: BotoCoreError) -> UserError:
    return UserError.of(
        Code.JOB_UNREACHABLE,
        f"SageMaker does not answer about the training job {name}: {error}",
        "Run the command again once it does: a job that was started goes on.",
    )
