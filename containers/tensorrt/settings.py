"""The family's own environment variables."""

from dataclasses import dataclass
from typing import Final, Self

from containers.serving.settings import EnvironmentReader

MOST_TOKENS: Final = 1_000_000
_MOST_THREADS: Final = 1024


@dataclass(frozen=True)
class GenerationSettings:
    """Limits of one request and the CPU back end's threads.

    `read` says what each field means, beside its variable.
    """

    max_input_tokens: int | None = None
    max_new_tokens: int = 256
    default_new_tokens: int = 20
    intra_op_threads: int | None = None

    @classmethod
    def read(cls, reader: EnvironmentReader) -> Self:
        """Reads the settings; problems stay with `reader` until its `finish`."""
        default = cls()
        max_new_tokens = reader.integer(
            "SLIPWAY_MAX_NEW_TOKENS",
            default=default.max_new_tokens,
            minimum=1,
            maximum=MOST_TOKENS,
            meaning="Largest number of tokens that a request may ask for.",
        )
        default_new_tokens = reader.optional_integer(
            "SLIPWAY_DEFAULT_NEW_TOKENS",
            minimum=1,
            maximum=MOST_TOKENS,
            meaning="Tokens that are generated where a request does not name a number. It is at "
            "most `SLIPWAY_MAX_NEW_TOKENS`.",
            # The default of Hugging Face's text-generation server.
            without=f"{default.default_new_tokens}, or `SLIPWAY_MAX_NEW_TOKENS` where it is less",
        )
        if default_new_tokens is None:
            default_new_tokens = min(default.default_new_tokens, max_new_tokens)
        elif default_new_tokens > max_new_tokens:
            reader.problem(
                f"SLIPWAY_DEFAULT_NEW_TOKENS={default_new_tokens} exceeds "
                f"SLIPWAY_MAX_NEW_TOKENS={max_new_tokens}"
            )
        return cls(
            max_input_tokens=reader.optional_integer(
                "SLIPWAY_MAX_INPUT_TOKENS",
                minimum=1,
                maximum=MOST_TOKENS,
                meaning="Longest prompt, in tokens.",
                without="what the model's positions allow",
            ),
            max_new_tokens=max_new_tokens,
            default_new_tokens=default_new_tokens,
            intra_op_threads=reader.optional_integer(
                "SLIPWAY_INTRA_OP_THREADS",
                minimum=1,
                maximum=_MOST_THREADS,
                meaning="Threads that share one operator of ONNX Runtime on the CPU.",
                without="one for each physical core",
            ),
        )
