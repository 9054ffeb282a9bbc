"""Codes of settings of the LMI container."""

from collections.abc import Sequence

from slipway.codes.code import Code
from slipway.codes.entry import Entry

ENTRIES: Sequence[Entry] = (
    Entry(
        Code.LMI_ENGINE,
        "The image does not have the engine",
        "`engine` must be an engine of the image, and Slipway must know a handler for it. "
        "Upper and lower case matter.",
        "Delete `engine` to use the image's default, or choose the framework whose image has "
        "the engine.",
    ),
    Entry(
        Code.LMI_HANDLER,
        "The handler cannot be used",
        "`entry_point` must name a handler inside the image, and a model has either "
        "`entry_point` or `script`. An engine that runs no Python reads neither.",
        "Use a handler that the printed remedy lists. Put a model.py of your own into the "
        "folder of `script`.",
    ),
    Entry(
        Code.LMI_ACCELERATOR,
        "The image and the accelerator do not match",
        "Each image of AWS is made for GPUs or for Neuron devices. The handler must load the "
        "model on the same kind of device.",
        "Choose an instance type of the kind in the printed remedy, or the framework for the "
        "type that you have.",
    ),
    Entry(
        Code.LMI_COPY_SIZE,
        "One copy needs more accelerators",
        "A copy of the model uses `tensor_parallel_degree` times `pipeline_parallel_degree` "
        "accelerators. The instance type has fewer.",
        "Lower a degree, or choose a type with more accelerators, for example `ml.g5.12xlarge` "
        "with four GPUs.",
    ),
    Entry(
        Code.LMI_ATTENTION_HEADS,
        "The degree does not divide the heads",
        "Tensor parallelism gives each accelerator the same number of attention heads.",
        "Use a `tensor_parallel_degree` that the printed remedy lists.",
    ),
    Entry(
        Code.LMI_PIPELINE_PARALLELISM,
        "The image has no pipeline parallelism",
        "The framework in this image would ignore or refuse a `pipeline_parallel_degree` above 1.",
        "Delete `pipeline_parallel_degree`, and raise `tensor_parallel_degree` instead.",
    ),
    Entry(
        Code.LMI_WEIGHTS_FROM_S3,
        "The image does not copy weights from S3",
        "Slipway gives an LMI container the S3 address of the weights. This old image cannot "
        "download from there.",
        "Use the version in the printed remedy, or a later one.",
    ),
    Entry(
        Code.LMI_NETWORK_ISOLATION,
        "Network isolation blocks the weights",
        "The container downloads the weights from S3 by itself, and network isolation forbids "
        "every connection.",
        "Set `network_isolation: false`, or use the other remedy in the message.",
    ),
    Entry(
        Code.LMI_TIMEOUT,
        "The timeout is longer than SageMaker waits",
        "SageMaker ends a start after `container_startup_health_check_timeout_seconds`, and a "
        "realtime request after 60 seconds. A longer timeout of the server has no effect.",
        "Lower the server's timeout. For loading, you can raise SageMaker's timeout instead.",
    ),
    Entry(
        Code.LMI_FAMILY,
        "The framework does not serve the family",
        "The framework in this image, or its mode without a rolling batch, loads only certain "
        "model architectures.",
        "Choose another framework or version, or correct `model.family`.",
    ),
    Entry(
        Code.LMI_IMAGE_DEFECT,
        "The image has a known defect",
        "This version of the image has a fault with these settings, such as mixed answers or "
        "degraded text. Slipway's facts have the source.",
        "Change the setting that the printed remedy names, or use another version.",
    ),
    Entry(
        Code.LMI_DTYPE,
        "The framework does not load this precision",
        "The framework in this image does not load weights in the `dtype` of the config.",
        "Use a `dtype` that the printed remedy lists.",
    ),
    Entry(
        Code.LMI_ROLLING_BATCH,
        "The rolling batch does not fit",
        "A rolling batch must exist in the image and run on the engine. It also excludes "
        "batches of `max_batch_size`.",
        "Use a value that the printed remedy lists, or delete `rolling_batch` and set "
        "`max_batch_size`.",
    ),
    Entry(
        Code.LMI_SETTING_UNREAD,
        "The container would not read the setting",
        "With these versions or batch settings, nothing in the image reads the field. It would "
        "have no effect.",
        "Delete the field, or set the field that it depends on, for example `rolling_batch` or "
        "`max_batch_size`.",
    ),
    Entry(
        Code.LMI_BATCH_REFUSED,
        "The handler cannot answer batches",
        "The handler takes one request at a time, or cannot stream to several requests of one "
        "batch. A batch would fail for all its requests.",
        "Set `max_batch_size: 1`, or use the other remedy in the message.",
    ),
    Entry(
        Code.LMI_DEVICE_MAP,
        "The model would load on one GPU",
        "Without a rolling batch, the framework spreads layers over GPUs only with a "
        "`device_map`. Quantization with bitsandbytes needs a `device_map` too.",
        "Add `device_map: auto` to `serving.options`, or set `tensor_parallel_degree: 1`.",
    ),
    Entry(
        Code.LMI_STREAMING,
        "The streaming option has no effect",
        "The framework does not stream with this option under the current settings.",
        "Delete the option, or use the other remedy in the message.",
    ),
    Entry(
        Code.LMI_OPTION_UNKNOWN,
        "The container reads no such option",
        "DJL Serving ignores an option that it does not know. A misspelt option would have no "
        "effect, and no error.",
        "Correct the name. The printed remedy has the nearest one, or the names that Slipway's "
        "handler reads.",
    ),
    Entry(
        Code.LMI_OPTION_HAS_FIELD,
        "The option has a field of its own",
        "Slipway writes this key of serving.properties from a field of the config, or the "
        "server does not read the key as an option.",
        "Set the field that the message names, and delete the option.",
    ),
    Entry(
        Code.LMI_OPTION_UNREAD,
        "The container would ignore the option",
        "The option is outdated in this version, or belongs to another engine or rolling batch.",
        "Delete the option, or change the setting that it belongs to.",
    ),
    Entry(
        Code.LMI_OPTION_CONFLICT,
        "Two options contradict each other",
        "Two names lead to the same option, or two options exclude each other. The server "
        "would follow one of them only.",
        "Delete one of the two options.",
    ),
    Entry(
        Code.LMI_OPTION_VALUE,
        "The option's value does not fit",
        "The option takes another type or range, or a value such as `false` would switch it "
        "on. The server would fail late, or not at all.",
        "Set the value that the printed remedy describes. Delete the option to switch it off.",
    ),
    Entry(
        Code.LMI_VARIABLE_CONFLICT,
        "The variable conflicts with Slipway's settings",
        "The variable changes a setting that Slipway writes, such as the model's address or "
        "the handler.",
        "Delete the variable, and set the field in the printed remedy.",
    ),
    Entry(
        Code.LMI_VARIABLES_UNREAD,
        "The image takes no settings from variables",
        "With `configuration: environment`, the settings are variables of the container. An "
        "older server takes the address of the weights for a name on the Hugging Face Hub.",
        "Set `configuration: file`, or use the version in the printed remedy.",
    ),
    Entry(
        Code.LMI_NEEDS_FILE,
        "The setting needs a file of settings",
        "With `configuration: environment` there is no package. A script, partitioned weights, "
        "and some options need one, and the number and length of variables are limited.",
        "Set `configuration: file`, or delete the setting.",
    ),
    Entry(
        Code.LMI_BUILT_IMAGE,
        "`image: built` does not fit the setting",
        "Slipway builds images with its own handler for some frameworks only. The handler is "
        "inside the image, so that other handlers have no effect.",
        "Set `image: managed`, or delete the setting that the message names.",
    ),
    Entry(
        Code.LMI_NO_PARTITION,
        "The weights cannot be partitioned in advance",
        "`compile` splits weights in a training job. This framework, engine, model family or "
        "degree has no such step, or its parts cannot be served.",
        "Delete `compile`. The container then splits the weights when it loads them.",
    ),
    Entry(
        Code.LMI_PARTITION_OPTION,
        "The option excludes partitioned weights",
        "The job that partitions the weights writes the option itself, excludes it, or cannot "
        "read its value.",
        "Delete the option or `compile`. Write the value on one line, without spaces around it.",
    ),
    Entry(
        Code.LMI_PARTITION_HOST,
        "The partition job's instance is too small",
        "The job needs as many accelerators as one copy of the model, and disk for the weights "
        "and their parts.",
        "Set `compile.instance` to the endpoint's type, or raise `compile.volume_size_gb`.",
    ),
    Entry(
        Code.LMI_BF16,
        "The GPU has no bf16",
        "NVIDIA's GPUs have bf16 from compute capability 8.0 on. The engines refuse it on older "
        "ones, such as the T4 and the V100.",
        "Use `dtype: fp16`, or `fp32` for T5. Or choose a type with a newer GPU.",
    ),
    Entry(
        Code.LMI_KEY_VALUE_HEADS,
        "Key/value heads cannot be split by the degree",
        "The engine gives each GPU the same number of key/value heads, or copies each head to the "
        "same number of GPUs. One of the two numbers has to divide the other.",
        "Use a degree that the printed remedy lists.",
    ),
    Entry(
        Code.LMI_TOO_MANY_TOKENS,
        "The server's limit is below the longest request",
        "A prompt of `max_input_tokens` and an answer of `max_new_tokens` together are longer than "
        "the engine's own limit of a sequence.",
        "Raise the limit in `options`, or lower the numbers of tokens.",
    ),
    Entry(
        Code.LMI_RELEASE,
        "LMI serves a checkpoint",
        "`artifacts.release` is for a model that was compiled for a container of Slipway. LMI "
        "serves a checkpoint, as it is or partitioned.",
        "Use `artifacts.weights` with `source: path` and the directory of the checkpoint.",
    ),
)
