"""The environment variables that every family's encoders have."""

from dataclasses import dataclass
from typing import Final, Self

from containers.encoders.manifest import DTYPES, LONGEST_SEQUENCE_TOKENS, TASK_OUTPUTS
from containers.serving.settings import EnvironmentReader, one_of, whole_number

OF_MANIFEST: Final = "the manifest's value"


@dataclass(frozen=True)
class EncoderSettings:
    """Longest text, and the values that the manifest must have; None is what the manifest says."""

    task: str | None = one_of(
        "SLIPWAY_TASK",
        None,
        TASK_OUTPUTS,
        "Task of the model. The container refuses a manifest with another one.",
        without=OF_MANIFEST,
    )
    sequence_length: int | None = whole_number(
        "SLIPWAY_SEQUENCE_LENGTH",
        None,
        (8, LONGEST_SEQUENCE_TOKENS),
        "Longest bucket, in tokens. The container refuses a manifest with another one.",
        without=OF_MANIFEST,
    )
    dtype: str | None = one_of(
        "SLIPWAY_DTYPE",
        None,
        DTYPES,
        "Precision that the model was compiled in. The container refuses a manifest with another "
        "one.",
        without=OF_MANIFEST,
    )
    max_text_characters: int = whole_number(
        "SLIPWAY_MAX_TEXT_CHARACTERS",
        200_000,
        (1, 10_000_000),
        "Longest text of a request, in characters.",
    )

    @classmethod
    def read(cls, reader: EnvironmentReader) -> Self:
        return reader.settings(cls)
