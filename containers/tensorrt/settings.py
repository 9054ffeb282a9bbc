"""The family's own environment variables."""

from dataclasses import dataclass, replace
from typing import Final, Self

from containers.encoders.settings import EncoderSettings
from containers.serving.settings import EnvironmentReader, whole_number

MOST_TOKENS: Final = 1_000_000
_MOST_THREADS: Final = 1024
_DEFAULT_NEW_TOKENS: Final = "SLIPWAY_DEFAULT_NEW_TOKENS"


@dataclass(frozen=True)
class GenerationSettings:
    max_new_tokens: int = whole_number(
        "SLIPWAY_MAX_NEW_TOKENS",
        256,
        (1, MOST_TOKENS),
        "Largest number of tokens that a request may ask for.",
    )
    default_new_tokens: int = whole_number(
        _DEFAULT_NEW_TOKENS,
        20,
        (1, MOST_TOKENS),
        "Tokens that are generated where a request does not name a number. It is at most "
        "`SLIPWAY_MAX_NEW_TOKENS`.",
        # The default of Hugging Face's text-generation server.
        without="20, or `SLIPWAY_MAX_NEW_TOKENS` where it is less",
    )
    max_input_tokens: int | None = whole_number(
        "SLIPWAY_MAX_INPUT_TOKENS",
        None,
        (1, MOST_TOKENS),
        "Longest prompt, in tokens.",
        without="what the model's positions allow",
    )
    intra_op_threads: int | None = whole_number(
        "SLIPWAY_INTRA_OP_THREADS",
        None,
        (1, _MOST_THREADS),
        "Threads that share one operator of ONNX Runtime on the CPU.",
        without="one for each physical core",
    )

    @classmethod
    def read(cls, reader: EnvironmentReader) -> Self:
        settings = reader.settings(cls)
        if settings.default_new_tokens <= settings.max_new_tokens:
            return settings
        if reader.is_given(_DEFAULT_NEW_TOKENS):
            reader.problem(
                f"{_DEFAULT_NEW_TOKENS}={settings.default_new_tokens} exceeds "
                f"SLIPWAY_MAX_NEW_TOKENS={settings.max_new_tokens}"
            )
        return replace(settings, default_new_tokens=settings.max_new_tokens)


@dataclass(frozen=True)
class TensorRTSettings:
    generation: GenerationSettings
    encoder: EncoderSettings

    @classmethod
    def read(cls, reader: EnvironmentReader) -> Self:
        settings = cls(GenerationSettings.read(reader), EncoderSettings.read(reader))
        if settings.encoder.task is not None:
            for name in (_DEFAULT_NEW_TOKENS, "SLIPWAY_MAX_NEW_TOKENS", "SLIPWAY_MAX_INPUT_TOKENS"):
                if reader.is_given(name):
                    reader.problem(
                        f"{name} is for text generation, and SLIPWAY_TASK="
                        f"{settings.encoder.task} is a task of encoders"
                    )
        return settings
