"""The container's settings: Triton's own variables for SageMaker, and Slipway's beside them.

It keeps to Python 3.10.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from containers.serving.settings import EnvironmentReader, SharedSettings

if TYPE_CHECKING:
    from typing import Self

DEFAULT_MODEL: Final = "SAGEMAKER_TRITON_DEFAULT_MODEL_NAME"
"""Triton's front end for SageMaker reads the same variable."""

_MEBIBYTE: Final = 1024 * 1024


@dataclass(frozen=True)
class TritonSettings(SharedSettings):
    """Where the server listens, and the limits of its model.

    `read` says what each field means, beside its variable.
    """

    port: int = 8080
    server: Path = Path("/opt/tritonserver/bin/tritonserver")
    model_name: str = "model"
    max_batch_delay_microseconds: int = 0
    instance_count: int = 1
    max_input_tokens: int = 64
    max_new_tokens: int = 64
    intra_op_threads: int = 1
    shared_memory_bytes: int = 16 * _MEBIBYTE
    log_verbose: bool = False
    metrics_port: int | None = None

    @classmethod
    def read(cls, reader: EnvironmentReader) -> Self:
        """Reads the settings; problems stay with `reader` until its `finish`."""
        default = cls()
        settings = cls(
            port=reader.integer(
                "SAGEMAKER_BIND_TO_PORT",
                default=default.port,
                minimum=1,
                maximum=65_535,
                meaning="TCP port of the requests.",
            ),
            **vars(cls.read_shared(reader, waiting="requests")),
            server=Path(
                reader.text(
                    "SLIPWAY_TRITON_SERVER",
                    default=str(default.server),
                    meaning="Program of the server. AWS's image has it at the default.",
                )
            ),
            model_name=reader.text(
                DEFAULT_MODEL,
                default=default.model_name,
                meaning="Name of the model in Triton's repository.",
            ),
            max_batch_delay_microseconds=reader.integer(
                "SLIPWAY_MAX_BATCH_DELAY_MICROSECONDS",
                default=default.max_batch_delay_microseconds,
                minimum=0,
                maximum=10_000_000,
                meaning="Longest time that a request waits for others. With 0 a batch takes the "
                "requests that are there.",
            ),
            instance_count=reader.integer(
                "SLIPWAY_INSTANCE_COUNT",
                default=default.instance_count,
                minimum=1,
                maximum=64,
                meaning="Copies of the model on each GPU, or on the host where it has none.",
            ),
            max_input_tokens=reader.integer(
                "SLIPWAY_MAX_INPUT_TOKENS",
                default=default.max_input_tokens,
                minimum=1,
                maximum=32_768,
                meaning="Longest text, in tokens. A longer one is answered 400.",
            ),
            max_new_tokens=reader.integer(
                "SLIPWAY_MAX_NEW_TOKENS",
                default=default.max_new_tokens,
                minimum=1,
                maximum=32_768,
                meaning="Largest number of tokens of an answer.",
            ),
            intra_op_threads=reader.integer(
                "SLIPWAY_INTRA_OP_THREADS",
                default=default.intra_op_threads,
                minimum=1,
                maximum=1024,
                meaning="Threads of each copy that share one operator of ONNX Runtime.",
            ),
            shared_memory_bytes=reader.integer(
                "SAGEMAKER_TRITON_SHM_DEFAULT_BYTE_SIZE",
                default=default.shared_memory_bytes,
                minimum=_MEBIBYTE,
                maximum=16 * 1024 * _MEBIBYTE,
                meaning="Shared memory of each copy at its start. It grows where requests need "
                "more.",
            ),
            log_verbose=reader.boolean(
                "SAGEMAKER_TRITON_LOG_VERBOSE",
                default=default.log_verbose,
                meaning="Whether Triton writes its verbose log, with lines for each request.",
            ),
            metrics_port=reader.optional_integer(
                "SLIPWAY_METRICS_PORT",
                minimum=1,
                maximum=65_535,
                meaning="TCP port of Triton's metrics, on loopback.",
                without="any free port",
            ),
        )
        # It becomes the name of a directory.
        if "/" in settings.model_name or settings.model_name in (".", ".."):
            reader.problem(f"{DEFAULT_MODEL}={settings.model_name!r} cannot be a directory's name")
        return settings
