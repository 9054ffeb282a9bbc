"""The container's settings: Triton's own variables for SageMaker, and Slipway's beside them.

It keeps to Python 3.10.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from containers.serving.settings import (
    EnvironmentReader,
    SharedSettings,
    directory,
    flag,
    queue_length,
    text,
    whole_number,
)

if TYPE_CHECKING:
    from typing import Self

DEFAULT_MODEL: Final = "SAGEMAKER_TRITON_DEFAULT_MODEL_NAME"
"""Triton's front end for SageMaker reads the same variable."""

_MEBIBYTE: Final = 1024 * 1024


@dataclass(frozen=True)
class TritonSettings(SharedSettings):
    port: int = whole_number(
        "SAGEMAKER_BIND_TO_PORT", 8080, (1, 65_535), "TCP port of the requests."
    )
    max_queue_length: int = queue_length("requests")
    server: Path = directory(  # noqa: RUF009  (makes a field)
        "SLIPWAY_TRITON_SERVER",
        Path("/opt/tritonserver/bin/tritonserver"),
        "Program of the server. AWS's image has it at the default.",
    )
    model_name: str = text(DEFAULT_MODEL, "model", "Name of the model in Triton's repository.")
    max_batch_delay_microseconds: int = whole_number(
        "SLIPWAY_MAX_BATCH_DELAY_MICROSECONDS",
        0,
        (0, 10_000_000),
        "Longest time that a request waits for others. With 0 a batch takes the requests that are "
        "there.",
    )
    instance_count: int = whole_number(
        "SLIPWAY_INSTANCE_COUNT",
        1,
        (1, 64),
        "Copies of the model on each GPU, or on the host where it has none.",
    )
    max_input_tokens: int = whole_number(
        "SLIPWAY_MAX_INPUT_TOKENS",
        64,
        (1, 32_768),
        "Longest text, in tokens. A longer one is answered 400.",
    )
    max_new_tokens: int = whole_number(
        "SLIPWAY_MAX_NEW_TOKENS", 64, (1, 32_768), "Largest number of tokens of an answer."
    )
    intra_op_threads: int = whole_number(
        "SLIPWAY_INTRA_OP_THREADS",
        1,
        (1, 1024),
        "Threads of each copy that share one operator of ONNX Runtime.",
    )
    shared_memory_bytes: int = whole_number(
        "SAGEMAKER_TRITON_SHM_DEFAULT_BYTE_SIZE",
        16 * _MEBIBYTE,
        (_MEBIBYTE, 16 * 1024 * _MEBIBYTE),
        "Shared memory of each copy at its start. It grows where requests need more.",
    )
    log_verbose: bool = flag(
        "SAGEMAKER_TRITON_LOG_VERBOSE",
        False,
        "Whether Triton writes its verbose log, with lines for each request.",
    )
    metrics_port: int | None = whole_number(
        "SLIPWAY_METRICS_PORT",
        None,
        (1, 65_535),
        "TCP port of Triton's metrics, on loopback.",
        without="any free port",
    )

    @classmethod
    def read(cls, reader: EnvironmentReader) -> Self:
        settings = reader.settings(cls)
        settings.check_queue(reader)
        # It becomes the name of a directory.
        if "/" in settings.model_name or settings.model_name in (".", ".."):
            reader.problem(f"{DEFAULT_MODEL}={settings.model_name!r} cannot be a directory's name")
        return settings
