"""Examples of `model_configs/NAME.yaml`, whole and by section."""

from collections.abc import Mapping

from tools.reference.config_examples import Example

_GPT2, _LMI, _TRITON, _NEURON = (
    "gpt2-autocomplete",
    "qwen2-7b-vllm",
    "t5-spelling",
    "bert-qa-inf2",
)
# It has no autoscaling of its own, whose target an asynchronous endpoint would not have.
_FIXED_COUNT = "flan-ul2"


def _part(name: str, text: str) -> Example:
    return Example(f"part of {name}", text)


# By the heading's title; the whole file has none.
MODEL: Mapping[str, Example] = {
    "": Example(
        "model",
        """\
name: search-completion
description: Completes search queries with GPT-2 XL

model:
  family: gpt2
  parameters: 1557611200
serving:
  container: tensorrt
  max_input_tokens: 64
  max_new_tokens: 32
  default_new_tokens: 12
artifacts:
  weights:
    source: hub
    repository: openai-community/gpt2-xl
    revision: 15ea56dee5df4983c59b2538573817e1667135e2
  size_gb: 6.4
  compile:
    instance: ml.g4dn.xlarge
endpoint:
  instances: [ml.g4dn.xlarge]
  instance_count: 2
alarms:
  model_latency_p99_milliseconds: 600
tags:
  team: search
environments:
  local:                      # laid over the rest of the file in this environment
    endpoint:
      instance_count: 1
""",
    ),
    "model": _part(
        _GPT2,
        """\
model:
  family: gpt2
  parameters: 1557611200
  layers: 48
  hidden_size: 1600
  attention_heads: 25
""",
    ),
    "serving tensorrt": _part(
        _GPT2,
        """\
serving:
  container: tensorrt
  dtype: fp16
  max_batch_size: 40          # four requests of ten texts each
  max_input_tokens: 64
  max_new_tokens: 42
  default_new_tokens: 12
""",
    ),
    "serving lmi": _part(
        _LMI,
        """\
serving:
  container: lmi
  framework: djl-lmi          # vLLM
  version: 0.36.0
  dtype: bf16
  max_rolling_batch_size: 32
  max_input_tokens: 1024
  max_new_tokens: 256
  options:
    max_model_len: 4096
""",
    ),
    "serving triton": _part(
        _TRITON,
        """\
serving:
  container: triton
  version: "26.05"
  max_batch_size: 16
  max_input_tokens: 32
  max_new_tokens: 32
""",
    ),
    "serving neuron": _part(
        _NEURON,
        """\
serving:
  container: neuron
  framework: neuronx
  task: question-answering
  objective: throughput
  sequence_length: 128
  batch_size: 8
""",
    ),
    "serving custom": Example(
        "model",
        """\
name: own-image

model:
  family: other
  parameters: 66000000
serving:
  container: custom
  image_uri: 111122223333.dkr.ecr.us-east-1.amazonaws.com/search:1.4.2
  environment:
    LOG_LEVEL: info
artifacts:
  weights:
    source: path
    path: build/own-image
  size_gb: 0.3
endpoint:
  instances: [ml.m5.xlarge]
alarms:
  model_latency_p99_milliseconds: 200
""",
    ),
    "artifacts": _part(
        _GPT2,
        """\
artifacts:
  sample:                     # where an environment says `artifacts: sample`
    path: samples/gpt2-autocomplete/model
  weights:                    # everywhere else
    source: hub
    repository: openai-community/gpt2-xl
    revision: 15ea56dee5df4983c59b2538573817e1667135e2
  size_gb: 6.4
  compile:
    instance: ml.g4dn.xlarge
""",
    ),
    "artifacts.sample": _part(
        _GPT2,
        """\
artifacts:
  sample:
    path: samples/gpt2-autocomplete/model
""",
    ),
    "artifacts.release": _part(
        _GPT2,
        """\
artifacts:
  release:
    path: build/gpt2-autocomplete/sm75
    target: sm75
""",
    ),
    "artifacts.weights hub": _part(
        _GPT2,
        """\
artifacts:
  weights:
    source: hub
    repository: openai-community/gpt2-xl
    revision: 15ea56dee5df4983c59b2538573817e1667135e2
    allow_patterns: ["*.json", "*.txt", "*.safetensors"]
  compile:
    instance: ml.g4dn.xlarge
""",
    ),
    "artifacts.weights s3": _part(
        _GPT2,
        """\
artifacts:
  weights:
    source: s3
    uri: s3://my-models/gpt2-xl/
  compile:
    instance: ml.g4dn.xlarge
""",
    ),
    "artifacts.weights path": _part(
        _GPT2,
        """\
artifacts:
  weights:
    source: path
    path: build/gpt2-xl
  compile:
    instance: ml.g4dn.xlarge
""",
    ),
    "artifacts.compile": _part(
        _GPT2,
        """\
artifacts:
  compile:
    instance: ml.g4dn.xlarge
    max_runtime_seconds: 7200
""",
    ),
    "endpoint": _part(
        _GPT2,
        """\
endpoint:
  instances: [ml.g4dn.xlarge, ml.g4dn.2xlarge]
  instance_provision_timeout_seconds: 600
  instance_count: 2
  log_retention_days: 90
""",
    ),
    "endpoint.async_inference": _part(
        _FIXED_COUNT,
        """\
endpoint:
  mode: async
  async_inference:
    input: s3://my-requests/summaries/
    output: s3://my-answers/summaries/
    failure_output: s3://my-answers/failed/
    error_topic_arn: arn:aws:sns:us-east-1:123456789012:failures
""",
    ),
    "endpoint.scale_to_zero": _part(
        _FIXED_COUNT,
        """\
endpoint:
  mode: scale_to_zero
  scale_to_zero:
    max_copies: 2
    target_concurrent_requests_per_copy: 4
""",
    ),
    "endpoint.scale_to_zero.schedules": _part(
        _FIXED_COUNT,
        """\
endpoint:
  mode: scale_to_zero
  scale_to_zero:
    max_copies: 2
    target_concurrent_requests_per_copy: 4
    schedules:
      - name: workday
        at: cron(45 6 ? * MON-FRI *)
        time_zone: Europe/Zurich
        min_copies: 1
        max_copies: 6
""",
    ),
    "endpoint.variants": _part(
        _GPT2,
        """\
endpoint:
  variants:
    - name: current
      weight: 0.9
    - name: candidate
      weight: 0.1
      instances: [ml.g4dn.2xlarge]
""",
    ),
    "endpoint.shadow": _part(
        _GPT2,
        """\
endpoint:
  shadow:
    sampling_percent: 50
    instances: [ml.g4dn.2xlarge]
    instance_count: 1
""",
    ),
    "endpoint.data_capture": _part(
        _GPT2,
        """\
endpoint:
  data_capture:
    destination: s3://my-capture/autocomplete/
    sampling_percent: 10
""",
    ),
    "endpoint.metrics": _part(
        _GPT2,
        """\
endpoint:
  metrics:
    enhanced: true
    publish_frequency_seconds: 10
""",
    ),
    "endpoint.vpc": _part(
        _GPT2,
        """\
endpoint:
  vpc:
    subnet_ids: [subnet-0a1b2c3d, subnet-4e5f6a7b]
    security_group_ids: [sg-0a1b2c3d]
""",
    ),
    "autoscaling": _part(
        _GPT2,
        """\
autoscaling:
  min_instance_count: 1
  max_instance_count: 4
  target_invocations_per_instance_per_minute: 600
  scale_in_cooldown_seconds: 300
""",
    ),
    "autoscaling.steps": _part(
        _GPT2,
        """\
autoscaling:
  min_instance_count: 1
  max_instance_count: 8
  target_invocations_per_instance_per_minute: 600
  steps:
    - {from_times_target: 2, add_instances: 1}
    - {from_times_target: 3.5, add_instances: 4}
""",
    ),
    "autoscaling.schedules": _part(
        _GPT2,
        """\
autoscaling:
  schedules:
    - name: workday
      at: cron(0 7 ? * MON-FRI *)
      time_zone: Europe/Zurich
      min_instance_count: 4
      max_instance_count: 12
""",
    ),
    "alarms": _part(
        _GPT2,
        """\
alarms:
  server_error_rate_percent: 1
  model_latency_p99_milliseconds: 600
  memory_utilization_percent: 80
  gpu_memory_utilization_percent: 90
  evaluation_periods_minutes: 3
""",
    ),
    "rollout": _part(
        _GPT2,
        """\
endpoint:
  instance_count: 4
autoscaling:
  min_instance_count: 4
  max_instance_count: 8
  target_invocations_per_instance_per_minute: 600
rollout:
  strategy: canary
  step_percent: 25
  rollback_alarms: [server_error_rate, model_latency_p99]
  wait_seconds: 300
  termination_wait_seconds: 300
""",
    ),
}
