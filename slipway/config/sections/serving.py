"""`serving`: the container, a union told apart by `container`."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from slipway.config.sections.base import Environment, ProjectPath, Section

Dtype = Literal["fp32", "fp16", "bf16", "int8", "fp8"]
OptionValue = str | int | float | bool


class TensorRTServing(Section):
    """Slipway's TensorRT container: batches across requests, keeps a key/value cache."""

    container: Literal["tensorrt"] = Field(description="Container family.", examples=["tensorrt"])
    dtype: Literal["fp32", "fp16"] = Field(
        "fp16", description="Precision of the engine's weights and cache.", examples=["fp16"]
    )
    tensorrt_version: Literal["10.4", "10.13"] | None = Field(
        None,
        description="Release in the image; without it the newest that supports the GPU. V100 "
        "(`ml.p3`) needs 10.4: TensorRT 10.5 removed it.",
        examples=["10.13"],
    )
    max_batch_size: int = Field(
        8, ge=1, le=256,
        description="Most sequences in one forward pass.", examples=[10],
    )  # fmt: skip
    max_batch_delay_milliseconds: int = Field(
        5, ge=0, le=1000,
        description="Longest a request waits for others to share its batch with.", examples=[5],
    )  # fmt: skip
    max_queue_length: int = Field(
        256, ge=1, le=100_000,
        description="Requests that may wait; one more is answered 503.", examples=[256],
    )  # fmt: skip
    max_input_tokens: int = Field(
        ge=1, le=32_768, description="Longest prompt accepted, in tokens.", examples=[32]
    )
    max_new_tokens: int = Field(
        ge=1, le=32_768, description="Most tokens one request may generate.", examples=[30]
    )
    default_new_tokens: int = Field(
        ge=1, le=32_768,
        description="Tokens generated when a request does not say.", examples=[12],
    )  # fmt: skip
    request_timeout_seconds: int = Field(
        55, ge=1, le=60,
        description="A request not answered by then is answered 504. SageMaker's own limit is 60.",
        examples=[55],
    )  # fmt: skip


class LmiServing(Section):
    """AWS's DJL Large Model Inference images: FasterTransformer, DeepSpeed, vLLM, TensorRT-LLM."""

    container: Literal["lmi"] = Field(description="Container family.", examples=["lmi"])
    framework: Literal[
        "djl-fastertransformer", "djl-deepspeed", "djl-neuronx", "djl-tensorrtllm", "djl-lmi"
    ] = Field(
        description="Which of the images; `djl-lmi` (vLLM) is the one that AWS still develops.",
        examples=["djl-lmi"],
    )
    version: str = Field(
        pattern=r"^[0-9]+\.[0-9]+\.[0-9]+$",
        description="DJL Serving's version in the image's tag.", examples=["0.36.0"],
    )  # fmt: skip
    image: Literal["managed", "built"] = Field(
        "managed",
        description="AWS's image, or one that we build on it with Slipway's handlers inside, for "
        "FasterTransformer and DeepSpeed: they answer in place of the image's.",
        examples=["managed"],
    )
    configuration: Literal["file", "environment"] = Field(
        "file",
        description="Settings in a package with serving.properties, whose weights the container "
        "copies itself, or as variables of the container (`OPTION_...`, `SERVING_...`), with "
        "weights that SageMaker brings, so that the network may be isolated: of `djl-lmi` and "
        "`djl-tensorrtllm` from 0.28.",
        examples=["environment"],
    )
    engine: str | None = Field(
        None,
        description="DJL engine, in the version's own spelling; without it the framework's.",
        examples=["FasterTransformer"],
    )
    entry_point: str | None = Field(
        None,
        description="Built-in handler, `option.entryPoint`; without it the engine's.",
        examples=["djl_python.huggingface"],
    )
    script: ProjectPath | None = Field(
        None,
        description="Directory with your own model.py, in place of a built-in handler.",
        examples=["handlers/flan-t5"],
    )
    tensor_parallel_degree: int = Field(
        1, ge=1, le=1024, description="Accelerators one copy is spread over.", examples=[4]
    )
    pipeline_parallel_degree: int = Field(
        1, ge=1, le=1024, description="Pipeline stages of one copy.", examples=[1]
    )
    dtype: Dtype = Field(description="Precision the weights are loaded in.", examples=["fp16"])
    max_batch_size: int = Field(
        1, ge=1, le=1024,
        description="Requests that DJL Serving hands to the handler together.", examples=[4],
    )  # fmt: skip
    max_batch_delay_milliseconds: int = Field(
        100, ge=0, le=60_000, description="Longest a request waits for others.", examples=[100]
    )
    max_queue_length: int = Field(
        1000, ge=1, le=100_000, description="`job_queue_size`.", examples=[1000]
    )
    rolling_batch: str | None = Field(
        None,
        description="Continuous batching: `option.rolling_batch`, as the version knows it.",
        examples=["vllm"],
    )
    max_rolling_batch_size: int | None = Field(
        None, ge=1, le=4096, description="Sequences in a rolling batch.", examples=[32]
    )
    max_input_tokens: int | None = Field(
        None, ge=1, le=10_000_000, description="Longest prompt, for the memory estimate.",
        examples=[512],
    )  # fmt: skip
    max_new_tokens: int | None = Field(
        None, ge=1, le=1_000_000, description="Most tokens generated, for the memory estimate.",
        examples=[128],
    )  # fmt: skip
    predict_timeout_seconds: int = Field(
        60, ge=1, le=3600, description="`option.predict_timeout`.", examples=[60]
    )
    model_loading_timeout_seconds: int | None = Field(
        None, ge=1, le=3600,
        description="`option.model_loading_timeout`; without it what SageMaker gives the start-up, "
        "`endpoint.container_startup_health_check_timeout_seconds`.",
        examples=[1200],
    )  # fmt: skip
    trust_remote_code: bool = Field(
        False,
        description="Lets the checkpoint's own Python code run in the container.", examples=[False],
    )  # fmt: skip
    options: dict[str, OptionValue] = Field(
        default_factory=dict,
        description="Further `option.KEY` of serving.properties, checked against the version.",
        examples=[{"gpu_memory_utilization": 0.9}],
    )
    environment: Environment = Field(
        default_factory=dict, max_length=90, description="Variables of the container.",
        examples=[{"OMP_NUM_THREADS": "1"}],
    )  # fmt: skip


class TritonServing(Section):
    """AWS's Triton image, with a model repository that Slipway generates."""

    container: Literal["triton"] = Field(description="Container family.", examples=["triton"])
    version: str = Field(
        pattern=r"^[0-9]{2}\.[0-9]{2}$",
        description="Release of the image, `YY.MM`.", examples=["25.09"],
    )  # fmt: skip
    repository: ProjectPath | None = Field(
        None,
        description="Directory of your own model repository: `MODEL/config.pbtxt`, `MODEL/1/`. "
        "Without it Slipway makes one for the model's family, which `t5` is there for.",
        examples=["triton/t5-spelling"],
    )
    default_model: str | None = Field(
        None, pattern=r"^[\w.-]+$", max_length=255,
        description="Model that answers, where a repository of yours has several.",
        examples=["spelling"],
    )  # fmt: skip
    backend: Literal["tensorrt", "onnxruntime", "python"] = Field(
        "tensorrt", description="What runs the graphs.", examples=["tensorrt"]
    )
    dtype: Literal["fp32", "fp16"] = Field(
        "fp16", description="Precision of the graphs.", examples=["fp16"]
    )
    max_batch_size: int = Field(
        8, ge=1, le=1024, description="Most requests in one batch.", examples=[8]
    )
    max_batch_delay_microseconds: int = Field(
        0, ge=0, le=10_000_000,
        description="Longest a request waits for others; 0 takes who is there.", examples=[0],
    )  # fmt: skip
    instance_group_count: int = Field(
        1, ge=1, le=64, description="Copies of the model on one GPU.", examples=[1]
    )
    max_input_tokens: int = Field(
        ge=1, le=32_768, description="Longest text accepted, in tokens.", examples=[64]
    )
    max_new_tokens: int = Field(
        ge=1, le=32_768, description="Most tokens one request may generate.", examples=[64]
    )
    shared_memory_bytes: int = Field(
        67_108_864, ge=1_048_576, le=17_179_869_184,
        description="Shared memory of the Python backend (SAGEMAKER_TRITON_SHM_DEFAULT_BYTE_SIZE).",
        examples=[67_108_864],
    )  # fmt: skip
    log_verbose: bool = Field(
        False, description="Triton's verbose log, a line and more for each request.",
        examples=[False],
    )  # fmt: skip
    environment: Environment = Field(
        default_factory=dict, max_length=90, description="Variables of the container.",
        examples=[{"OMP_NUM_THREADS": "1"}],
    )  # fmt: skip


class NeuronServing(Section):
    """Slipway's container on AWS Inferentia and Trainium, for encoders such as BERT."""

    container: Literal["neuron"] = Field(description="Container family.", examples=["neuron"])
    framework: Literal["neuron", "neuronx"] = Field(
        description="`neuron` for inf1 (frozen by AWS), `neuronx` for inf2 and trn1.",
        examples=["neuronx"],
    )
    task: Literal[
        "question-answering", "sequence-classification", "token-classification", "embeddings"
    ] = Field(description="What is asked of the model.", examples=["question-answering"])
    objective: Literal["throughput", "latency"] = Field(
        description="Data parallel with batches, or one model pipelined over cores (inf1).",
        examples=["throughput"],
    )
    sequence_length: int = Field(
        ge=8, le=4096,
        description="Tokens the graph is traced for; shorter texts are padded to it.",
        examples=[128],
    )  # fmt: skip
    sequence_lengths: tuple[Annotated[int, Field(ge=8, le=4096)], ...] | None = Field(
        None, min_length=1, max_length=16, strict=False,
        description="Buckets: a graph for each of these lengths, ascending up to "
        "`sequence_length`, and a text is computed by the shortest that it fits. Each graph has "
        "weights of its own. Without it there is one.",
        examples=[[32, 128]],
    )  # fmt: skip
    batch_size: int = Field(
        1, ge=1, le=1024, description="Sequences the graph is traced for.", examples=[6]
    )
    max_batch_delay_milliseconds: int = Field(
        5, ge=0, le=1000,
        description="Longest a request waits for others to share its batch with.", examples=[5],
    )  # fmt: skip
    pipeline_cores: int | None = Field(
        None, ge=1, le=64,
        description="NeuronCores of one pipeline. Default: AWS's formula for the model's size.",
        examples=[16],
    )  # fmt: skip
    workers: int | None = Field(
        None, ge=1, le=64,
        description="Copies of the model; without it as many as the cores carry.", examples=[4],
    )  # fmt: skip
    expected_concurrency: int | None = Field(
        None, ge=1, le=100_000,
        description="Requests in flight at a time; a pipeline wants twelve to fill it.",
        examples=[12],
    )  # fmt: skip
    dtype: Literal["fp32", "bf16", "fp16"] = Field(
        "bf16", description="Precision the compiler casts matrix products to.", examples=["bf16"]
    )
    max_queue_length: int = Field(
        256, ge=1, le=100_000,
        description="Requests that may wait; one more is answered 503.", examples=[256],
    )  # fmt: skip
    request_timeout_seconds: int = Field(
        55, ge=1, le=60,
        description="A request not answered by then is answered 504. SageMaker's own limit is 60.",
        examples=[55],
    )  # fmt: skip


class CustomServing(Section):
    """An image of your own that keeps SageMaker's contract: port 8080, /ping, /invocations."""

    container: Literal["custom"] = Field(description="Container family.", examples=["custom"])
    image_uri: str = Field(
        pattern=r"^[0-9]{12}\.dkr\.ecr\.[a-z0-9-]+\.amazonaws\.com(\.cn)?/[a-z0-9._/-]+"
        r"(:[a-zA-Z0-9_][a-zA-Z0-9._-]{0,127}|@sha256:[0-9a-f]{64})$",
        max_length=255,
        description="Image in ECR, with its tag or digest. It lies in the endpoint's region: "
        "SageMaker pulls no image across regions.",
        examples=["123456789012.dkr.ecr.eu-west-1.amazonaws.com/search:1.4.2"],
    )
    cuda_version: str | None = Field(
        None, pattern=r"^[0-9]+\.[0-9]+$",
        description="CUDA in the image; decides which AMI fits.", examples=["12.4"],
    )  # fmt: skip
    dtype: Dtype | None = Field(
        None, description="Precision of the weights, for the memory estimate.", examples=["fp16"]
    )
    environment: Environment = Field(
        default_factory=dict, max_length=100, description="Variables of the container.",
        examples=[{"LOG_LEVEL": "info"}],
    )  # fmt: skip


Serving = Annotated[
    TensorRTServing | LmiServing | TritonServing | NeuronServing | CustomServing,
    Field(discriminator="container"),
]
