"""`serving`: the container, a union told apart by `container`."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from slipway.config.sections.base import Environment, ProjectPath, Section

Dtype = Literal["fp32", "fp16", "bf16", "int8", "fp8"]
OptionValue = str | int | float | bool


class TensorRTServing(Section):
    """Slipway's TensorRT container. It batches across requests and keeps a key/value cache."""

    container: Literal["tensorrt"] = Field(description="Container family.", examples=["tensorrt"])
    dtype: Literal["fp32", "fp16"] = Field(
        "fp16", description="Precision of the engine's weights and cache.", examples=["fp16"]
    )
    tensorrt_version: Literal["10.4", "10.13"] | None = Field(
        None,
        description="TensorRT release of the image. Without it: the newest that supports the "
        "GPU. V100 (`ml.p3`) needs 10.4, because TensorRT 10.5 removed it.",
        examples=["10.13"],
    )
    max_batch_size: int = Field(
        8,
        ge=1,
        le=256,
        description="Largest number of sequences in one forward pass.",
        examples=[10],
    )
    max_batch_delay_milliseconds: int = Field(
        5,
        ge=0,
        le=1000,
        description="Longest time that a request waits for others to share its batch.",
        examples=[5],
    )
    max_queue_length: int = Field(
        256,
        ge=1,
        le=100_000,
        description="Largest number of requests that may wait. One more is answered 503.",
        examples=[256],
    )
    max_input_tokens: int = Field(
        ge=1, le=32_768, description="Longest prompt that is accepted, in tokens.", examples=[32]
    )
    max_new_tokens: int = Field(
        ge=1,
        le=32_768,
        description="Largest number of tokens that one request may generate.",
        examples=[30],
    )
    default_new_tokens: int = Field(
        ge=1,
        le=32_768,
        description="Tokens that are generated when a request does not name a number.",
        examples=[12],
    )
    request_timeout_seconds: int = Field(
        55,
        ge=1,
        le=60,
        description="A request without an answer by then is answered 504. SageMaker's own "
        "limit is 60.",
        examples=[55],
    )


class LmiServing(Section):
    """AWS's DJL Large Model Inference images: FasterTransformer, DeepSpeed, vLLM, TensorRT-LLM."""

    container: Literal["lmi"] = Field(description="Container family.", examples=["lmi"])
    framework: Literal[
        "djl-fastertransformer", "djl-deepspeed", "djl-neuronx", "djl-tensorrtllm", "djl-lmi"
    ] = Field(
        description="Which of the images. AWS still develops `djl-lmi`, which has vLLM.",
        examples=["djl-lmi"],
    )
    version: str = Field(
        pattern=r"^[0-9]+\.[0-9]+\.[0-9]+$",
        description="DJL Serving's version, as it stands in the image's tag.",
        examples=["0.36.0"],
    )
    image: Literal["managed", "built"] = Field(
        "managed",
        description="`managed` is AWS's image. `built` is an image on top of it with "
        "Slipway's handlers for FasterTransformer and DeepSpeed. They answer in "
        "place of AWS's handlers.",
        examples=["managed"],
    )
    configuration: Literal["file", "environment"] = Field(
        "file",
        description="Where the container finds its settings. `file`: in serving.properties of"
        " the published package. The container itself copies the weights. "
        "`environment`: in variables (`OPTION_...`, `SERVING_...`). SageMaker "
        "brings the weights, so that the network may be isolated. Only for "
        "`djl-lmi` and `djl-tensorrtllm` from 0.28.",
        examples=["environment"],
    )
    engine: str | None = Field(
        None,
        description="DJL engine, in the version's own spelling. Without it: the framework's "
        "engine.",
        examples=["FasterTransformer"],
    )
    entry_point: str | None = Field(
        None,
        description="Built-in handler, `option.entryPoint`. Without it: the engine's handler.",
        examples=["djl_python.huggingface"],
    )
    script: ProjectPath | None = Field(
        None,
        description="Directory with your own model.py, in place of a built-in handler.",
        examples=["handlers/flan-t5"],
    )
    tensor_parallel_degree: int = Field(
        1,
        ge=1,
        le=1024,
        description="Number of accelerators that one copy of the model is spread over.",
        examples=[4],
    )
    pipeline_parallel_degree: int = Field(
        1, ge=1, le=1024, description="Number of pipeline stages of one copy.", examples=[1]
    )
    dtype: Dtype = Field(description="Precision that the weights are loaded in.", examples=["fp16"])
    max_batch_size: int = Field(
        1,
        ge=1,
        le=1024,
        description="Largest number of requests that DJL Serving hands to the handler together.",
        examples=[4],
    )
    max_batch_delay_milliseconds: int = Field(
        100,
        ge=0,
        le=60_000,
        description="Longest time that a request waits for others.",
        examples=[100],
    )
    max_queue_length: int = Field(
        1000,
        ge=1,
        le=100_000,
        description="Largest number of requests that may wait: `job_queue_size`.",
        examples=[1000],
    )
    rolling_batch: str | None = Field(
        None,
        description="Continuous batching: `option.rolling_batch`, as the version knows it.",
        examples=["vllm"],
    )
    max_rolling_batch_size: int | None = Field(
        None,
        ge=1,
        le=4096,
        description="Largest number of sequences in a rolling batch.",
        examples=[32],
    )
    max_input_tokens: int | None = Field(
        None,
        ge=1,
        le=10_000_000,
        description="Longest prompt, for the memory estimate.",
        examples=[512],
    )
    max_new_tokens: int | None = Field(
        None,
        ge=1,
        le=1_000_000,
        description="Most tokens generated, for the memory estimate.",
        examples=[128],
    )
    predict_timeout_seconds: int = Field(
        60,
        ge=1,
        le=3600,
        description="Time limit of one request in the handler: `option.predict_timeout`.",
        examples=[60],
    )
    model_loading_timeout_seconds: int | None = Field(
        None,
        ge=1,
        le=3600,
        description="Time limit of loading: `option.model_loading_timeout`. Without it: "
        "`endpoint.container_startup_health_check_timeout_seconds`, which is what"
        " SageMaker gives the start.",
        examples=[1200],
    )
    trust_remote_code: bool = Field(
        False,
        description="Lets the checkpoint's own Python code run in the container.",
        examples=[False],
    )
    options: dict[str, OptionValue] = Field(
        default_factory=dict,
        description="Further `option.KEY` of serving.properties. They are checked against the"
        " version.",
        examples=[{"gpu_memory_utilization": 0.9}],
    )
    environment: Environment = Field(
        default_factory=dict,
        max_length=90,
        description="Variables of the container.",
        examples=[{"OMP_NUM_THREADS": "1"}],
    )


class TritonServing(Section):
    """AWS's Triton image, with a model repository that Slipway generates."""

    container: Literal["triton"] = Field(description="Container family.", examples=["triton"])
    version: str = Field(
        pattern=r"^[0-9]{2}\.[0-9]{2}$",
        description="Release of the image, `YY.MM`.",
        examples=["25.09"],
    )
    repository: ProjectPath | None = Field(
        None,
        description="Directory of your own model repository: `MODEL/config.pbtxt`, "
        "`MODEL/1/`. Without it Slipway makes one for the model's family. That "
        "exists for `t5`.",
        examples=["triton/t5-spelling"],
    )
    default_model: str | None = Field(
        None,
        pattern=r"^[\w.-]+$",
        max_length=255,
        description="Model that answers, if your own repository has several.",
        examples=["spelling"],
    )
    backend: Literal["tensorrt", "onnxruntime", "python"] = Field(
        "tensorrt", description="Backend that runs the graphs.", examples=["tensorrt"]
    )
    dtype: Literal["fp32", "fp16"] = Field(
        "fp16", description="Precision of the graphs.", examples=["fp16"]
    )
    max_batch_size: int = Field(
        8, ge=1, le=1024, description="Largest number of requests in one batch.", examples=[8]
    )
    max_batch_delay_microseconds: int = Field(
        0,
        ge=0,
        le=10_000_000,
        description="Longest time that a request waits for others. With 0 a batch takes the "
        "requests that are there.",
        examples=[0],
    )
    instance_group_count: int = Field(
        1, ge=1, le=64, description="Copies of the model on one GPU.", examples=[1]
    )
    max_input_tokens: int = Field(
        ge=1, le=32_768, description="Longest text that is accepted, in tokens.", examples=[64]
    )
    max_new_tokens: int = Field(
        ge=1,
        le=32_768,
        description="Largest number of tokens that one request may generate.",
        examples=[64],
    )
    shared_memory_bytes: int = Field(
        67_108_864,
        ge=1_048_576,
        le=17_179_869_184,
        description="Shared memory of the Python backend: "
        "`SAGEMAKER_TRITON_SHM_DEFAULT_BYTE_SIZE`.",
        examples=[67_108_864],
    )
    log_verbose: bool = Field(
        False,
        description="Whether Triton writes its verbose log, with a line or more for each request.",
        examples=[False],
    )
    environment: Environment = Field(
        default_factory=dict,
        max_length=90,
        description="Variables of the container.",
        examples=[{"OMP_NUM_THREADS": "1"}],
    )


class NeuronServing(Section):
    """Slipway's container on AWS Inferentia and Trainium, for encoders such as BERT."""

    container: Literal["neuron"] = Field(description="Container family.", examples=["neuron"])
    framework: Literal["neuron", "neuronx"] = Field(
        description="`neuron` is for inf1, which AWS no longer develops. `neuronx` is for "
        "inf2 and trn1.",
        examples=["neuronx"],
    )
    task: Literal[
        "question-answering", "sequence-classification", "token-classification", "embeddings"
    ] = Field(
        description="Task of the model. It decides what requests and answers look like.",
        examples=["question-answering"],
    )
    objective: Literal["throughput", "latency"] = Field(
        description="`throughput`: a copy on each core, with batches. `latency`: one model "
        "pipelined over cores (inf1).",
        examples=["throughput"],
    )
    sequence_length: int = Field(
        ge=8,
        le=4096,
        description="Number of tokens that the graph is traced for. Shorter texts are padded "
        "to it.",
        examples=[128],
    )
    sequence_lengths: tuple[Annotated[int, Field(ge=8, le=4096)], ...] | None = Field(
        None,
        min_length=1,
        max_length=16,
        strict=False,
        description="Buckets: a graph for each of these lengths, ascending up to "
        "`sequence_length`. The shortest graph that a text fits computes it. Each"
        " graph has weights of its own. Without it there is one graph.",
        examples=[[32, 128]],
    )
    batch_size: int = Field(
        1,
        ge=1,
        le=1024,
        description="Number of sequences that the graph is traced for.",
        examples=[6],
    )
    max_batch_delay_milliseconds: int = Field(
        5,
        ge=0,
        le=1000,
        description="Longest time that a request waits for others to share its batch.",
        examples=[5],
    )
    pipeline_cores: int | None = Field(
        None,
        ge=1,
        le=64,
        description="NeuronCores of one pipeline. Without it: AWS's formula for the model's size.",
        examples=[16],
    )
    workers: int | None = Field(
        None,
        ge=1,
        le=64,
        description="Copies of the model. Without it: as many as the cores carry.",
        examples=[4],
    )
    expected_concurrency: int | None = Field(
        None,
        ge=1,
        le=100_000,
        description="Requests in flight at a time. A pipeline needs twelve to be full.",
        examples=[12],
    )
    dtype: Literal["fp32", "bf16", "fp16"] = Field(
        "bf16",
        description="Precision that the compiler casts matrix products to.",
        examples=["bf16"],
    )
    max_queue_length: int = Field(
        256,
        ge=1,
        le=100_000,
        description="Largest number of requests that may wait. One more is answered 503.",
        examples=[256],
    )
    request_timeout_seconds: int = Field(
        55,
        ge=1,
        le=60,
        description="A request without an answer by then is answered 504. SageMaker's own "
        "limit is 60.",
        examples=[55],
    )


class CustomServing(Section):
    """An image of your own that keeps SageMaker's contract: port 8080, /ping, /invocations."""

    container: Literal["custom"] = Field(description="Container family.", examples=["custom"])
    image_uri: str = Field(
        pattern=r"^[0-9]{12}\.dkr\.ecr\.[a-z0-9-]+\.amazonaws\.com(\.cn)?/[a-z0-9._/-]+"
        r"(:[a-zA-Z0-9_][a-zA-Z0-9._-]{0,127}|@sha256:[0-9a-f]{64})$",
        max_length=255,
        description="Image in ECR, with its tag or digest, in the endpoint's region. "
        "SageMaker pulls no image from another region.",
        examples=["123456789012.dkr.ecr.eu-west-1.amazonaws.com/search:1.4.2"],
    )
    cuda_version: str | None = Field(
        None,
        pattern=r"^[0-9]+\.[0-9]+$",
        description="CUDA version of the image. It decides which host image fits.",
        examples=["12.4"],
    )
    dtype: Dtype | None = Field(
        None, description="Precision of the weights, for the memory estimate.", examples=["fp16"]
    )
    environment: Environment = Field(
        default_factory=dict,
        max_length=100,
        description="Variables of the container.",
        examples=[{"LOG_LEVEL": "info"}],
    )


Serving = Annotated[
    TensorRTServing | LmiServing | TritonServing | NeuronServing | CustomServing,
    Field(discriminator="container"),
]
