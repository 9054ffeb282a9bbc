"""Settings that a mode excludes: one rule for each mode and setting.

Sources, read 2026-11-24 to 2026-11-29, all below https://docs.aws.amazon.com/sagemaker/latest/:

- `async`: InvokeEndpointAsync in botocore 1.44 names no variant. dg/async-inference-monitor.html
  lists all metrics. dg/model-monitor-data-capture.html captures for real-time endpoints and batch
  transform alone. APIReference/API_ModelInfrastructureConfig.html has RealTimeInference alone.
- `scale_to_zero`: AWS's own SDK sends `DataCaptureConfig` for an endpoint of models alone
  (`Model.deploy` of sagemaker 2.257.7). Terraform's aws_sagemaker_endpoint_configuration has
  `enable_ssm_access` for inference components.
- `serverless`: dg/serverless-endpoints.html ("Feature exclusions"), dg/shadow-tests-exclusions.html
"""

from collections.abc import Iterator
from dataclasses import dataclass

from slipway.codes.code import Code
from slipway.errors import FieldPath, Problem
from slipway.planning.asynchronous import ASYNC
from slipway.planning.component import SCALE_TO_ZERO
from slipway.planning.deployment import Deployment, Rule, problem
from slipway.planning.placements import SERVERLESS

_OF_INSTANCES = (
    *("instances", "instance_provision_timeout_seconds", "capacity_reservation_arn"),
    *("instance_count", "volume_size_gb", "routing", "prefix_routing", "inference_ami_version"),
    *("model_overrides", "core_dump", "ssm_access"),
    *("model_data_download_timeout_seconds", "container_startup_health_check_timeout_seconds"),
)
_NO_GPU = "AWS chooses the machines, and none has a GPU"
_TAKES_ALL = "copies of an inference component take the requests"


@dataclass(frozen=True)
class Exclusion:
    """A rule, which yields the problem of a setting that has a value in a mode that excludes it."""

    code: Code
    mode: str
    name: str
    why: str
    other_way: str = ", or set `mode: realtime`"

    def __call__(self, deployment: Deployment) -> Iterator[Problem]:
        config, endpoint = deployment.config, deployment.config.endpoint
        if endpoint.mode != self.mode:
            return
        is_section = self.name in type(config).model_fields
        section = config if is_section else endpoint
        value = getattr(section, self.name)
        # A serverless endpoint has no instances, so that the default of one would be misread too.
        is_given = self.mode == SERVERLESS and self.name in section.model_fields_set
        if value and (is_given or value != type(section).model_fields[self.name].default):
            field = (self.name,) if is_section else ("endpoint", self.name)
            yield self.problem(field, f"Remove `{self.name}`")

    def problem(self, field: FieldPath, remedy: str) -> Problem:
        """Returns the problem at a field, with a remedy that another mode ends."""
        return problem(
            self.code,
            f"`{self.name}` and `mode: {self.mode}` exclude each other: {self.why}",
            f"{remedy}{self.other_way}.",
            field,
        )


_COPIES = (Code.COMPONENT_EXCLUDES, SCALE_TO_ZERO)
_QUEUE = (Code.ASYNC_EXCLUDES, ASYNC)
_SERVERLESS = (Code.SERVERLESS_EXCLUDES, SERVERLESS)

RULES: tuple[Rule, ...] = (
    Exclusion(*_COPIES, "variants", _TAKES_ALL),
    Exclusion(*_COPIES, "shadow", _TAKES_ALL),
    Exclusion(
        *_COPIES,
        "autoscaling",
        "`endpoint.scale_to_zero` scales the copies, and the instances follow them",
        ", and set a target under `endpoint.scale_to_zero`",
    ),
    Exclusion(*_COPIES, "instance_count", "the instances follow the copies", ""),
    Exclusion(
        *_COPIES,
        "data_capture",
        "AWS documents no data capture of inference components, and its SDK sends none",
    ),
    Exclusion(*_COPIES, "ssm_access", "SageMaker ignores it for inference components"),
    Exclusion(*_QUEUE, "variants", "the queue's requests and metrics name no variant"),
    Exclusion(*_QUEUE, "data_capture", "the requests and answers of a queue lie in S3 already", ""),
    Exclusion(
        Code.METRICS,
        ASYNC,
        "metrics",
        "AWS documents these settings for real-time endpoints only",
        "",
    ),
    Exclusion(
        Code.SHADOW_EXCLUDES, ASYNC, "shadow", "SageMaker copies requests in real time alone"
    ),
    *(Exclusion(Code.SERVERLESS_INSTANCES, SERVERLESS, name, _NO_GPU) for name in _OF_INSTANCES),
    Exclusion(*_SERVERLESS, "variants", "AWS takes one production variant there"),
    Exclusion(*_SERVERLESS, "shadow", "AWS takes no shadow variant there"),
    Exclusion(*_SERVERLESS, "data_capture", "AWS captures no data there"),
    Exclusion(*_SERVERLESS, "vpc", "AWS runs the containers in no VPC of yours"),
    Exclusion(*_SERVERLESS, "volume_key_arn", "AWS names no storage volume there"),
    Exclusion(*_SERVERLESS, "metrics", "AWS documents MetricsConfig for instances alone"),
)
