"""Codes of values that do not go together, in every container."""

from collections.abc import Sequence

from slipway.codes.code import Code
from slipway.codes.entry import Entry

ENTRIES: Sequence[Entry] = (
    Entry(
        Code.VARIANT_SET,
        "The set of variants makes no sense",
        "`variants` splits requests between at least two variants, by weight. One variant "
        "alone needs no section, and with all weights 0 no variant gets requests.",
        "Delete `variants`, add a second variant, or give one variant a `weight` above 0.",
    ),
    Entry(
        Code.NO_SECOND_TYPE,
        "There is no second instance type",
        "`instance_provision_timeout_seconds` says when SageMaker tries the next type of a "
        "pool. A pool of one type has no next type.",
        "Add another type to `instances`, or delete the timeout.",
    ),
    Entry(
        Code.SCALING_TARGETS,
        "Autoscaling needs exactly one target",
        "Two targets would scale against each other, and without a target the number of "
        "instances never changes.",
        "Set one of the targets, for example `target_invocations_per_instance_per_minute`.",
    ),
    Entry(
        Code.SCALING_OF_MODE,
        "Autoscaling does not fit the endpoint's mode",
        "A realtime endpoint has metrics of invocations and keeps at least one instance. An "
        "asynchronous endpoint has a metric of its backlog instead.",
        "Use the target that the printed remedy names. Set `min_instance_count: 1` for a "
        "realtime endpoint.",
    ),
    Entry(
        Code.SCALING_RANGE,
        "The autoscaling range is contradictory",
        "The minimum is above the maximum, or `instance_count` is outside the range. "
        "Autoscaling would change such a count at once.",
        "Choose `min_instance_count`, `instance_count` and `max_instance_count` in ascending "
        "order.",
    ),
    Entry(
        Code.BURSTABLE_TYPE,
        "SageMaker does not scale burstable types",
        "Application Auto Scaling does not support endpoints on T instances, such as "
        "`ml.t2.medium`.",
        "Choose another type, for example `ml.m5.large`, or delete `autoscaling`.",
    ),
    Entry(
        Code.MODE_SECTION,
        "`mode` and its section do not match",
        "The modes `async` and `scale_to_zero` need a section of their own, and no other mode "
        "reads that section.",
        "Add the section, delete it, or change `mode`.",
    ),
    Entry(
        Code.COMPONENT_EXCLUDES,
        "The setting excludes `scale_to_zero`",
        "With `mode: scale_to_zero`, copies of an inference component answer the requests. "
        "Settings of the variant have no effect on them, and AWS captures no data of them.",
        "Delete the setting, or set `mode: realtime`.",
    ),
    Entry(
        Code.COMPONENT_TOO_LARGE,
        "A copy does not fit the instance",
        "One copy of the inference component needs more processors, memory or accelerators "
        "than the instance type has.",
        "Lower the demand of a copy under `scale_to_zero`, or choose a larger type.",
    ),
    Entry(
        Code.ARM_PROCESSOR,
        "The image does not run on the processor",
        "The container image has programs for x86-64. The instance type has an Arm processor "
        "(Graviton), or an accelerator that the image does not use.",
        "Choose a type with an Intel or AMD processor, for example `ml.m5.large`.",
    ),
    Entry(
        Code.VOLUME_OF_NVME_TYPE,
        "The instance type takes no volume size",
        "The type stores the model on its local NVMe disk. SageMaker refuses `VolumeSizeInGB` "
        "for such types.",
        "Delete `volume_size_gb`.",
    ),
    Entry(
        Code.HOST_IMAGE,
        "The host image does not fit",
        "`inference_ami_version` chooses the host's driver. The driver must fit the "
        "accelerator, the CUDA version of the image, and every type of the pool.",
        "Delete `inference_ami_version`: Slipway chooses a host image. Give types with "
        "different accelerators variants of their own.",
    ),
    Entry(
        Code.GPU_ALARM,
        "The GPU memory alarm cannot work",
        "SageMaker publishes `GPUMemoryUtilization` only for GPUs, and adds it up over the "
        "GPUs of an instance. One threshold cannot fit types with different numbers of GPUs.",
        "Delete `alarms.gpu_memory_utilization_percent`, or use types with the same number of "
        "GPUs.",
    ),
    Entry(
        Code.IMAGE_NOT_IN_REGION,
        "The image is not available in the region",
        "AWS does not publish the image in this region, or your own image is in another "
        "region. SageMaker pulls images only from the endpoint's region.",
        "Copy your own image to the region, for example with ECR replication. Otherwise choose "
        "another version or region.",
    ),
    Entry(
        Code.TYPE_NOT_IN_REGION,
        "The region does not host the type",
        "AWS's price list has no hosting price for this instance type in the region.",
        "Choose another type, or another region.",
    ),
    Entry(
        Code.GPU_TOO_OLD,
        "The GPU is too old for the image",
        "The software in the image needs a newer compute capability than the GPU has. The "
        "container would fail when it loads the model.",
        "Choose a type with a newer GPU, for example `ml.g5.xlarge`, or an older version of "
        "the image.",
    ),
    Entry(
        Code.ISOLATED_KEY,
        "`key_arn` does not isolate the model",
        "A key of a model's own has an effect only with `isolated: true`. It must differ from "
        "the environment's key, with which the roles of all models may decrypt.",
        "Add `isolated: true` and name another key, or delete `key_arn`. Without `key_arn`, "
        "the stack creates a key.",
    ),
    Entry(
        Code.NO_MODEL,
        "There is no model to deploy",
        "The config has no files for this environment. An environment deploys either "
        "`artifacts.sample` or the real model from `artifacts.weights` or `artifacts.release`.",
        "Add the missing source under `artifacts`, or set `artifacts: sample` or "
        "`artifacts: release` for the environment in environments.yaml.",
    ),
    Entry(
        Code.ARTIFACT_SOURCES,
        "The sources of the artifact contradict each other",
        "The real model has one source: either `release`, which is ready to serve, or "
        "`weights`. `compile` needs `weights`.",
        "Keep one source. Add `weights` if the model is to be compiled.",
    ),
    Entry(
        Code.LATENCY_UNREACHABLE,
        "The latency alarm can never go off",
        "Requests end at their timeout, and the latency objective of the alarm is not below "
        "that timeout.",
        "Lower `alarms.model_latency_p99_milliseconds`, or raise the request timeout.",
    ),
    Entry(
        Code.WEIGHTS_TOO_LARGE,
        "The weights do not fit the accelerator",
        "The weights alone need more memory than the accelerators of the instance type have. "
        "The container would fail when it loads the model.",
        "Use one of the ways that the printed remedy lists, such as a larger instance type, a "
        "smaller `dtype` or a higher `tensor_parallel_degree`.",
    ),
    Entry(
        Code.DISK_TOO_SMALL,
        "The artifact does not fit on the disk",
        "SageMaker stores the artifact on the volume, or on the local NVMe disk of types that "
        "have one.",
        "Set `volume_size_gb` to the number in the printed remedy, or choose a type with a "
        "larger local disk.",
    ),
    Entry(
        Code.ROLLOUT_STRATEGY,
        "The rollout strategy does not work here",
        "SageMaker updates inf1 instances and single instances all at once. With several variants "
        "there is no `rolling`. Inference components have a strategy of their own.",
        "Set `strategy: all_at_once`, or change what the message names.",
    ),
    Entry(
        Code.ROLLOUT_SETTING,
        "A rollout setting is missing or without effect",
        "A strategy with steps needs `step_percent`, within SageMaker's limits. The strategy "
        "`all_at_once` has no steps, and `rolling` keeps no old fleet. SageMaker updates inf1 "
        "endpoints without any of these settings.",
        "Add or delete the setting as the printed remedy says.",
    ),
    Entry(
        Code.ROLLOUT_TIME,
        "The rollout cannot end in time",
        "SageMaker rolls an update back when `max_execution_seconds` are over. The waits of "
        "this rollout alone take longer.",
        "Raise `max_execution_seconds` above the number in the printed remedy, or shorten "
        "`wait_seconds`.",
    ),
    Entry(
        Code.ROLLBACK_ALARMS,
        "The rollback alarms do not fit",
        "An update with steps needs at least one alarm that undoes it. The alarm must exist "
        "under `alarms`, and SageMaker limits the number of alarms.",
        "Name alarms that the config has, for example `rollback_alarms: [server_error_rate]`.",
    ),
    Entry(
        Code.NO_IMAGE,
        "Slipway has no image for this container",
        "The container's family says that Slipway builds its image, and the image has no sources.",
        "Choose another container. To read the template, add `-c allow-unpublished=true` to `cdk "
        "synth`.",
    ),
    Entry(
        Code.HEADS_OF_NETWORK,
        "The numbers of heads do not fit",
        "The hidden size is divided among the attention heads, and the attention heads among the "
        "key/value heads. No checkpoint has a remainder.",
        "Take the numbers from the checkpoint's config.json. Where it has `head_dim`, set "
        "`head_size`.",
    ),
    Entry(
        Code.SIZE_CONTRADICTS,
        "Size and number of parameters contradict each other",
        "A checkpoint has a quarter of a byte for each parameter at least, and sixteen bytes at "
        "most. Estimates of memory, disk and time follow from both numbers.",
        "Correct `model.parameters` or `artifacts.size_gb`.",
    ),
    Entry(
        Code.TOO_MANY_TOKENS,
        "The texts are longer than the network takes",
        "The family has a fixed number of positions, and a longer text fails in the container.",
        "Lower the number of tokens. `family: other` turns the check off, for a checkpoint with "
        "more positions.",
    ),
    Entry(
        Code.NETWORK,
        "The network is incomplete or contradicts itself",
        "An endpoint in a VPC needs subnets and at least one security group, each named once. A "
        "VPC endpoint for S3 is reached through route tables.",
        "Do what the printed remedy says, in the config's `endpoint.vpc` or in the environment's "
        "`network`.",
    ),
    Entry(
        Code.DATA_CAPTURE,
        "The captured data has no place",
        "Captured requests and answers lie in the artifact bucket, which must know when to delete "
        "them, or below a prefix of your own. A key of your own belongs to such a prefix.",
        "Set `captured_data_days` in the environment, or `destination` under `data_capture`.",
    ),
    Entry(
        Code.ROLE_BOUNDARY,
        "The permissions boundary is in another account",
        "IAM limits a role with a managed policy of the role's own account, or with a policy that "
        "AWS manages.",
        "Name a policy of the environment's account in `permissions_boundary_arn`.",
    ),
    Entry(
        Code.ASYNC_EXCLUDES,
        "The setting excludes an asynchronous endpoint",
        "The requests of a queue name no variant, and SageMaker captures the requests of real-time "
        "endpoints only.",
        "Remove the setting that the message names, or set `mode: realtime`.",
    ),
    Entry(
        Code.SHADOW_EXCLUDES,
        "The setting excludes a shadow variant",
        "SageMaker copies the requests of an endpoint with one production variant, and only "
        "requests that wait for their answer.",
        "Remove `endpoint.shadow`, or the setting that the message names.",
    ),
    Entry(
        Code.ROLLOUT_WATCH,
        "The alarms cannot see a fault",
        "An alarm goes off after `evaluation_periods_minutes` above its threshold. SageMaker "
        "watches each step for `wait_seconds`, and then goes on. A shorter wait than the alarm's "
        "minutes never undoes the update for a fault of the last step.",
        "Raise `wait_seconds` to the number in the printed remedy, or lower "
        "`evaluation_periods_minutes`.",
    ),
    Entry(
        Code.ALARM_OF_MODE,
        "The endpoint has no metric for the alarm",
        "Asynchronous endpoints publish other metrics than real-time endpoints. An alarm on a "
        "metric that is never published would never be raised.",
        "Remove the alarm that the message names. [Metrics](../reference/metrics.md) lists the "
        "metrics of each mode.",
    ),
    Entry(
        Code.ASYNC_SETTING,
        "A setting of the queue has no effect",
        "A key of topics is for the topics that `async_inference` names.",
        "Name a topic, or remove the key.",
    ),
    Entry(
        Code.COPIES_DIFFER,
        "Copies on a pool's types would differ",
        "One specification of the inference component holds for all types of a pool. Without a "
        "number of its own, a copy gets all accelerators of an instance, and types may have other "
        "numbers of them.",
        "Set the number that the message names under `scale_to_zero`.",
    ),
)
