"""For each field of the model config: a change of it, and where that change must be seen.

A field without a row here fails `test_every_field.py`: nobody can add one that does nothing.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from slipway.config.alarms_of_modes import watch_of
from slipway.config.sections.alarms import ALARM_KINDS
from tests.synth.field_bases import IMAGE, QUEUE

# Where a change is seen: in the template, or beside it in the CDK CLI's manifest; in what the lock
# pins (the sources, and the settings in an LMI package); in the request for the training job that
# compiles; in the template of the stack that an isolated model's artifacts have; only in what a
# plan tells its reviewer (memory, cost, warnings), as a field says that is there for that; in a
# problem that names the field or a section it is in; in the refusal of a value that does not suit
# the rest; or in the refusal to publish for its container.
Effect = Literal["template", "lock", "request", "artifacts", "plan", "refused"]

_LINEAR = {"rollout.strategy": "linear", "rollout.step_percent": 25}
_KEY = "arn:aws:kms:us-east-1:123456789012:key/1234abcd-12ab-34cd-56ef-1234567890ab"
# Weights that are stored quantised, and whose size nobody says.
_QUANTIZED = {
    "model.quantization": "awq", "model.vocabulary_size": 32_000, "model.tied_embeddings": False,
    "artifacts.size_gb": None,
}  # fmt: skip
_WINDOWED = {"model.sliding_window": 16, "model.windowed_layers": 6}


@dataclass(frozen=True)
class Change:
    """A change of one field from a base, and where it must be seen.

    `over` is set in the base as well, `along` only with the other value. For a field that tells a
    union apart, `becomes` names the base to become in place of a value.
    """

    effect: Effect
    base: str
    value: Any = None
    over: Mapping[str, Any] = field(default_factory=dict)
    along: Mapping[str, Any] = field(default_factory=dict)
    becomes: str | None = None


def _changes(effect: Effect, base: str, prefix: str, **values: Any) -> dict[str, Change]:
    return {f"{prefix}{name}": Change(effect, base, value) for name, value in values.items()}


def _section(
    effect: Effect,
    section: str,
    required: Mapping[str, Any],
    base: str = "tensorrt",
    also: Mapping[str, Any] | None = None,
    **more: Any,
) -> Any:
    """Rows of a section that a base lacks: each field with what the section requires besides."""
    return {
        f"{section}.{name}": Change(
            effect,
            base,
            value,
            along={f"{section}.{other}": needed for other, needed in required.items()}
            | dict(also or {}),
        )
        for name, value in {**required, **more}.items()
    }


CHANGES: Mapping[str, Change] = {
    **_changes("template", "tensorrt", "", name="other", description="Another", tags={"a": "b"}),
    "adapter_of": Change("template", "sleeping", "base"),
    "environments": Change(
        "template", "tensorrt", {"local": {"endpoint": {"instance_count": 9}}}
    ),
    "model.family": Change("plan", "lmi", "bert"),
    "model.parameters": Change("plan", "tensorrt", 250_000_000),
    **_changes(
        "plan", "shaped", "model.",
        layers=24, hidden_size=1536, key_value_heads=4, head_size=32, latent_size=128,
        cached_layers=6, state_bytes=40_000_000,
    ),
    "model.architecture": Change(
        "refused", "lmi", "NobodyServesThis", over={"serving.version": "0.36.0"}
    ),
    "model.sliding_window": Change("plan", "shaped", 8, over=_WINDOWED),
    "model.windowed_layers": Change("plan", "shaped", 12, over=_WINDOWED),
    "model.positions": Change("refused", "lmi", 64),
    "model.vocabulary_size": Change("plan", "lmi", 128_000, over=_QUANTIZED),
    "model.tied_embeddings": Change("plan", "lmi", True, over=_QUANTIZED),
    "model.experts": Change("refused", "lmi", 2, over={"serving.tensor_parallel_degree": 4}),
    "model.active_experts": Change("refused", "lmi", 9, along={"model.experts": 8}),
    "model.quantization": Change("plan", "lmi", "fp8", over=_QUANTIZED),
    # Without `key_value_heads` more heads are narrower ones, and the cache is as large.
    "model.attention_heads": Change("plan", "shaped", 6, over={"model.key_value_heads": 3}),
    "serving[tensorrt].container": Change("template", "custom", becomes="tensorrt"),
    "serving[tensorrt].dtype": Change("request", "compiled", "fp32"),
    **_changes(
        "template", "tensorrt", "serving[tensorrt].",
        tensorrt_version="10.4", max_batch_size=4, max_batch_delay_milliseconds=9,
        max_queue_length=9, max_input_tokens=32, max_new_tokens=40, default_new_tokens=9,
        request_timeout_seconds=9,
    ),
    **_changes(
        "template", "encoder", "serving[tensorrt].",
        task="embeddings", sequence_length=64, batch_size=4,
    ),
    "serving[tensorrt].sequence_lengths": Change("request", "encoder", [32, 128]),
    "serving[lmi].container": Change("template", "custom", becomes="lmi"),
    "serving[lmi].framework": Change("template", "fastertransformer", becomes="lmi"),
    "serving[lmi].version": Change("template", "lmi", "0.28.0"),
    "serving[lmi].image": Change("template", "fastertransformer", "built"),
    "serving[lmi].configuration": Change("template", "lmi", "environment"),
    "serving[lmi].environment": Change("template", "lmi", {"A": "b"}),
    # What is in the package's serving.properties is in the lock.
    **_changes(
        "lock", "lmi", "serving[lmi].",
        script="handlers/own", tensor_parallel_degree=4, dtype="fp16", rolling_batch="lmi-dist",
        max_rolling_batch_size=16, predict_timeout_seconds=50, model_loading_timeout_seconds=500,
        trust_remote_code=True, options={"gpu_memory_utilization": 0.8}, max_queue_length=9,
    ),
    **_changes(
        "lock", "fastertransformer", "serving[lmi].",
        engine="Python", entry_point="djl_python.huggingface", requirements="handlers/codegen",
    ),
    "serving[lmi].pipeline_parallel_degree": Change(
        "lock", "fastertransformer", 2, over={"serving.tensor_parallel_degree": 2}
    ),
    "serving[lmi].max_batch_size": Change(
        "lock", "fastertransformer", 4, over={"serving.script": "handlers/own"}
    ),
    "serving[lmi].max_batch_delay_milliseconds": Change(
        "lock", "fastertransformer", 50,
        over={"serving.script": "handlers/own", "serving.max_batch_size": 4},
    ),
    **_changes(
        "plan", "fastertransformer", "serving[lmi].", max_input_tokens=128, max_new_tokens=32
    ),
    "serving[triton].container": Change("template", "custom", becomes="triton"),
    **_changes(
        "template", "triton", "serving[triton].",
        version="25.04", default_model="m", shared_memory_bytes=67108865, log_verbose=True,
        environment={"A": "b"}, max_batch_size=4, max_batch_delay_microseconds=9,
        max_queue_length=9, instance_group_count=2,
        max_input_tokens=9, max_new_tokens=9,
    ),
    "serving[triton].repository": Change(
        "template", "triton", "triton/own",
        along={
            "artifacts.release": None,
            "serving.max_input_tokens": None,
            "serving.max_new_tokens": None,
        },
    ),
    **_changes(
        "request", "triton-compiled", "serving[triton].", backend="onnxruntime", dtype="fp32",
    ),
    "serving[neuron].container": Change("template", "custom", becomes="neuron"),
    "serving[neuron].framework": Change("template", "pipelined", becomes="neuron"),
    **_changes(
        "template", "neuron", "serving[neuron].",
        task="embeddings", sequence_length=64, batch_size=4,
        max_batch_delay_milliseconds=9, workers=1, dtype="fp16", max_queue_length=9,
        request_timeout_seconds=9,
    ),
    "serving[neuron].sequence_lengths": Change("request", "neuron", [32, 128]),
    "serving[neuron].pipeline_cores": Change("template", "pipelined", 8),
    "serving[neuron].objective": Change("template", "pipelined", "throughput"),
    "serving[neuron].expected_concurrency": Change("plan", "pipelined", 9),
    "serving[custom].container": Change("template", "tensorrt", becomes="custom"),
    "serving[custom].image_uri": Change("template", "custom", f"{IMAGE}/x:2"),
    "serving[custom].cuda_version": Change("template", "custom", "12.4"),
    "serving[custom].dtype": Change("plan", "custom", "fp16"),
    "serving[custom].environment": Change("template", "custom", {"A": "b"}),
    "serving[custom].model_data_object": Change("template", "custom", "model.tar.gz"),
    "serving[custom].private_registry.credentials_function_arn": Change(
        "template", "custom", "arn:aws:lambda:us-east-1:123456789012:function:a",
        over={
            "serving.image_uri": "registry.example.com/x:1",
            "serving.private_registry.credentials_function_arn":
                "arn:aws:lambda:us-east-1:123456789012:function:b",
            "endpoint.vpc": {
                "subnet_ids": ["subnet-0a1b2c3d"], "security_group_ids": ["sg-0a1b2c3d"],
            },
        },
    ),
    "serving[custom].local.program": Change(
        "template", "custom", ["serve"], over={"serving.local.program": ["python"]}
    ),
    "serving[custom].local.directory": Change(
        "template", "custom", "containers", over={"serving.local.program": ["python"]}
    ),
    "artifacts.sample.path": Change("lock", "tensorrt", "samples/other"),
    "artifacts.release.path": Change("lock", "released", "build/other"),
    "artifacts.release.target": Change(
        "lock", "released", "sm86", along={"endpoint.instances": ["ml.g5.xlarge"]}
    ),
    "artifacts.weights[hub].source": Change("lock", "path", becomes="compiled"),
    "artifacts.weights[s3].source": Change("lock", "compiled", becomes="s3"),
    "artifacts.weights[path].source": Change("lock", "compiled", becomes="path"),
    **_changes(
        "lock", "compiled", "artifacts.weights[hub].",
        repository="a/b", revision="b" * 40, allow_patterns=["*"],
    ),
    "artifacts.weights[s3].allow_patterns": Change("lock", "s3", ["*"]),
    "artifacts.weights[s3].uri": Change("lock", "s3", "s3://w/b/"),
    "artifacts.weights[path].allow_patterns": Change("lock", "path", ["*"]),
    "artifacts.weights[path].path": Change("lock", "path", "b"),
    "artifacts.size_gb": Change(
        "template", "lmi", 99,
        over={"endpoint.container_startup_health_check_timeout_seconds": None},
    ),
    "artifacts.accept_eula": Change("template", "tensorrt", True),
    "artifacts.isolated": Change("template", "tensorrt", True),
    "artifacts.key_arn": Change(
        "artifacts", "tensorrt", "arn:aws:kms:us-east-1:123456789012:key/0a",
        over={"artifacts.isolated": True},
    ),
    **_changes(
        "request", "compiled", "artifacts.compile.",
        instance="ml.g4dn.2xlarge", max_runtime_seconds=100, volume_size_gb=9,
    ),
    **_changes(
        "template", "tensorrt", "endpoint.",
        capacity_reservation_arn="arn:aws:sagemaker:us-east-1:123456789012:training-plan/a",
        instances=["ml.g4dn.2xlarge"], instance_count=3, model_data_download_timeout_seconds=601,
        container_startup_health_check_timeout_seconds=601, routing="random",
        network_isolation=False, log_retention_days=7, termination_protection=True,
        dashboard=False,
        execution_role_arn="arn:aws:iam::123456789012:role/a",
    ),
    **_section(
        "template", "endpoint.prefix_routing",
        {"prefix_length": 1024, "concurrency_threshold": 1},
        also={"endpoint.routing": "prefix_aware"},
    ),
    "endpoint.instance_provision_timeout_seconds": Change(
        "template", "tensorrt", 600,
        over={"endpoint.instances": ["ml.g4dn.xlarge", "ml.g4dn.2xlarge"]},
    ),
    "endpoint.volume_size_gb": Change(
        "template", "custom", 50, over={"endpoint.instances": ["ml.c5.xlarge"]}
    ),
    "endpoint.inference_ami_version": Change(
        "template", "custom", "al2-ami-sagemaker-inference-gpu-3-1"
    ),
    **_changes(
        "template", "variants", "endpoint.variants.",
        name="three", weight=2, instances=["ml.g4dn.2xlarge"], instance_count=3,
        serving={"max_batch_size": 4},
    ),
    "endpoint.variants.model": Change("plan", "variants", {"parameters": 774030080}),
    "endpoint.variants.artifacts": Change("refused", "variants", {"isolated": True}),
    "endpoint.model_overrides.instances": Change("template", "overriding", ["ml.g4dn.4xlarge"]),
    "endpoint.model_overrides.serving": Change("template", "overriding", {"max_batch_size": 4}),
    "endpoint.model_overrides.model": Change("plan", "overriding", {"parameters": 774030080}),
    "endpoint.model_overrides.artifacts": Change("refused", "overriding", {"isolated": True}),
    **_changes(
        "template", "serverless", "endpoint.serverless.",
        memory_size_mb=4096, max_concurrency=9, provisioned_concurrency=1,
    ),
    "endpoint.mode": Change(
        "template", "tensorrt", "async", along={"endpoint.async_inference": QUEUE}
    ),
    **_changes(
        "template", "async", "endpoint.async_inference.",
        input="s3://a/", output="s3://b/", failure_output="s3://c/", input_key_arn=_KEY,
        output_key_arn=_KEY, topic_key_arn=_KEY, max_concurrent_invocations_per_instance=4,
        success_topic_arn="arn:aws:sns:us-east-1:123456789012:a",
        error_topic_arn="arn:aws:sns:us-east-1:123456789012:b",
    ),
    "endpoint.async_inference.include_response_in": Change(
        "template", "async", ["error"],
        over={
            "endpoint.async_inference.error_topic_arn": "arn:aws:sns:us-east-1:123456789012:b"
        },
    ),
    **_changes(
        "template", "sleeping", "endpoint.scale_to_zero.",
        max_copies=3, target_concurrent_requests_per_copy=6, vcpus_per_copy=1,
        copy_memory_mib=2048, scale_in_cooldown_seconds=9, scale_out_cooldown_seconds=9,
        endpoint_of="another", min_copies=1, min_instance_count=1, placement_strategy="spread",
        cache_model=False, max_copy_memory_mib=4096,
    ),
    "endpoint.scale_to_zero.max_zone_imbalance": Change(
        "template", "sleeping", 1, over={"endpoint.scale_to_zero.placement_strategy": "spread"}
    ),
    **_section(
        "template", "endpoint.scale_to_zero.consolidation", {}, "sleeping",
        max_step_size=2, cooldown_minutes=30,
    ),
    **_changes(
        "template", "woken", "endpoint.scale_to_zero.schedules.",
        name="b", at="cron(0 9 ? * * *)", time_zone="Europe/Zurich", min_copies=2, max_copies=5,
    ),
    "endpoint.scale_to_zero.target_invocations_per_copy_per_minute": Change(
        "template", "sleeping", 9,
        along={"endpoint.scale_to_zero.target_concurrent_requests_per_copy": None},
    ),
    "endpoint.scale_to_zero.accelerators_per_copy": Change(
        "template", "sleeping", 2, over={"endpoint.instances": ["ml.g4dn.12xlarge"]}
    ),
    **_section(
        "template", "endpoint.shadow", {"sampling_percent": 50},
        instances=["ml.g4dn.2xlarge"], instance_count=2, serving={"max_batch_size": 4},
    ),
    "endpoint.shadow.model": Change(
        "plan", "tensorrt", {"parameters": 774030080},
        along={"endpoint.shadow.sampling_percent": 50},
    ),
    "endpoint.shadow.artifacts": Change(
        "refused", "tensorrt", {"isolated": True}, along={"endpoint.shadow.sampling_percent": 50}
    ),
    **_section(
        "template", "endpoint.metrics", {"enhanced": True},
        enhanced=False, publish_frequency_seconds=10, detailed_observability=False,
    ),
    **_section(
        "template", "endpoint.data_capture", {"destination": "s3://a/"},
        sampling_percent=10, capture=["input"],
        key_arn=_KEY,
    ),
    **_section(
        "template", "endpoint.vpc",
        {"subnet_ids": ["subnet-0a1b2c3d"], "security_group_ids": ["sg-0a1b2c3d"]},
    ),
    "endpoint.ssm_access": Change(
        "template", "released", True, over={"endpoint.network_isolation": False}
    ),
    **_section(
        "template", "endpoint.core_dump", {"destination": "s3://a/"}, "released",
        key_arn="arn:aws:kms:eu-west-1:123456789012:key/1234abcd-12ab-34cd-56ef-1234567890ab",
    ),
    "endpoint.volume_key_arn": Change(
        "template", "tensorrt", _KEY,
    ),
    **_changes(
        "template", "scaled", "autoscaling.",
        min_instance_count=1, max_instance_count=9, scale_in_cooldown_seconds=9,
        scale_out_cooldown_seconds=9, target_invocations_per_instance_per_minute=9,
    ),
    "autoscaling.target_concurrent_requests_per_instance": Change(
        "template", "scaled", 9,
        along={"autoscaling.target_invocations_per_instance_per_minute": None},
    ),
    "autoscaling.target_backlog_per_instance": Change(
        "template", "async", 9,
        over={
            "autoscaling.min_instance_count": 0, "autoscaling.max_instance_count": 4,
            "autoscaling.target_backlog_per_instance": 5,
        },
    ),
    "autoscaling.target_gpu_utilization_percent": Change(
        "template", "scaled", 60,
        along={"autoscaling.target_invocations_per_instance_per_minute": None},
    ),
    **_changes(
        "template", "stepped", "autoscaling.steps.", from_times_target=5, add_instances=2
    ),
    **_changes(
        "template", "scheduled", "autoscaling.schedules.",
        name="b", at="cron(0 9 ? * * *)", time_zone="Europe/Zurich", min_instance_count=3,
        max_instance_count=5,
    ),
    **_changes(
        "template", "tensorrt", "alarms.",
        **{
            kind.field: 9 for kind in ALARM_KINDS.values() if watch_of(kind, "realtime")
        },
        evaluation_periods_minutes=9,
    ),
    "alarms.oldest_request_seconds": Change("template", "async", 9),
    "alarms.model_setup_p99_milliseconds": Change("template", "serverless", 9),
    "alarms.concurrency_utilization_percent": Change("template", "serverless", 9),
    "alarms.at_max_capacity": Change("template", "scaled", True),
    "rollout.strategy": Change(
        "template", "guarded", "canary", along={"rollout.step_percent": 50}
    ),
    "rollout.step_percent": Change("template", "guarded", 50, over=_LINEAR),
    "rollout.step_count": Change(
        "template", "guarded", 1, over=_LINEAR, along={"rollout.step_percent": None}
    ),
    **{
        f"rollout.rollback_step_{unit}": Change(
            "template", "guarded", value, over=_LINEAR | {"rollout.strategy": "rolling"}
        )
        for unit, value in (("percent", 50), ("count", 1))
    },
    **_changes(
        "template", "guarded", "rollout.",
        wait_seconds=240, termination_wait_seconds=9, max_execution_seconds=900,
        rollback_alarms=["model_latency_p99"],
    ),
}  # fmt: skip
