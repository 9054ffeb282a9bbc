"""Settings from environment variables: parsed once, every problem reported at once.

A class of settings is a dataclass. Each of its fields is made of the variable that it comes from:

    max_batch_size: int = whole_number("SLIPWAY_MAX_BATCH_SIZE", 8, (1, 1024), "...")

A container's program makes one `EnvironmentReader`, which reads the settings of the serving core
and of the family. Then it calls `finish`, which raises with all problems together. A `SLIPWAY_*`
variable that was never read is a problem too, because a misspelt variable would otherwise be
ignored. It keeps to Python 3.10, which some of Triton's images have.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

from containers.serving.logs import LOG_LEVELS
from containers.serving.suggestions import nearest_name_hint

if TYPE_CHECKING:
    from typing import Self

_OWN_PREFIX = "SLIPWAY_"
# The key of a field's variable in its metadata.
_VARIABLE = "variable"
_TEXT = "text"

SettingsT = TypeVar("SettingsT")
ValueT = TypeVar("ValueT")
TextT = TypeVar("TextT", str, "str | None")
NumberT = TypeVar("NumberT", int, "int | None")


class SettingsError(Exception):
    """The environment is not valid.

    `problems` has one sentence per bad variable, with its name, its value and the allowed values.
    """

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("; ".join(problems))
        self.problems = tuple(problems)


@dataclass(frozen=True)
class Variable:
    """A variable that a container reads; docs/reference/variables.md is generated from these.

    Attributes:
        values: its type and bounds, in words.
        default: the value if it is not set; None if there is none.
        meaning: whole sentences.
        without: effect of an unset variable, if `default` does not say it all.
        parse: returns the value of a text, or None if the text is none of the values.
    """

    name: str
    values: str
    default: str | None
    meaning: str
    without: str
    # Any: a variable's own type.
    parse: Callable[[str], Any]

    def problem(self, text: str) -> str:
        if self.values == _TEXT:
            return f"{self.name} is empty: unset it for the default, {self.default}"
        article = "a " if self.values.startswith("whole") else ""
        return f"{self.name}={text!r} is not {article}{self.values}"


def text(name: str, default: str, meaning: str, without: str = "") -> str:
    return _field(name, _TEXT, default, meaning, without, lambda text: text)


def directory(name: str, default: Path, meaning: str) -> Path:
    return _field(name, _TEXT, default, meaning, "", Path)


def one_of(
    name: str,
    default: TextT,
    allowed: Iterable[str],
    meaning: str,
    without: str = "",
    convert: Callable[[str], str] = str,
) -> TextT:
    known = {value: value for value in allowed}
    values = f"one of {', '.join(known)}"
    return _field(name, values, default, meaning, without, lambda text: known.get(convert(text)))


def flag(name: str, default: bool, meaning: str) -> bool:
    values = {"true": True, "false": False}
    return _field(name, f"one of {', '.join(values)}", default, meaning, "", values.get)


def whole_number(
    name: str, default: NumberT, bounds: tuple[int, int], meaning: str, without: str = ""
) -> NumberT:
    least, most = bounds

    def parse(text: str) -> int | None:
        # int() would also accept "1_000", " 8 " and digits of other scripts.
        is_plain = text.isascii() and text.isdigit() and len(text) <= 18
        return int(text) if is_plain and least <= int(text) <= most else None

    values = f"whole number from {least} to {most}"
    return _field(name, values, default, meaning, without, parse)


def _field(
    name: str,
    values: str,
    default: ValueT,
    meaning: str,
    without: str,
    # Any: the type of the default, or None after a problem.
    parse: Callable[[str], Any],
) -> ValueT:
    shown = str(default).lower() if isinstance(default, bool) else str(default)
    variable = Variable(name, values, None if default is None else shown, meaning, without, parse)
    return field(default=default, metadata={_VARIABLE: variable})


class EnvironmentReader:
    """Reads settings from `environ`; collects problems instead of raising them."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ
        self._read: dict[str, Variable] = {}
        self._valid: set[str] = set()
        self.problems: list[str] = []

    @property
    def variables(self) -> tuple[Variable, ...]:
        return tuple(self._read.values())

    def settings(self, made: type[SettingsT]) -> SettingsT:
        """Returns settings of a class, all of whose fields are made of variables.

        A field keeps its default if the variable is not set, or after a problem.
        """
        given: dict[str, Any] = {}
        # Any: a dataclass, which no type variable can be bound to.
        for each in fields(cast(Any, made)):
            variable: Variable = each.metadata[_VARIABLE]
            self._read[variable.name] = variable
            text = self._environ.get(variable.name)
            if text is None:
                continue
            value = variable.parse(text) if text.strip() else None
            if value is None:
                self.problem(variable.problem(text))
            else:
                given[each.name] = value
                self._valid.add(variable.name)
        return made(**given)

    def is_given(self, name: str) -> bool:
        return name in self._valid

    def problem(self, sentence: str) -> None:
        """Adds a problem, for rules about several variables together."""
        self.problems.append(sentence)

    def finish(self) -> None:
        """Raises `SettingsError` if there were problems; called after all variables were read.

        A `SLIPWAY_*` variable that was never read is a problem too.
        """
        for name in sorted(self._environ):
            if name.startswith(_OWN_PREFIX) and name not in self._read:
                hint = nearest_name_hint(name, self._read, common_prefix=_OWN_PREFIX)
                self.problem(f"{name} is not a variable of this container{hint}")
        if self.problems:
            raise SettingsError(self.problems)


def queue_length(inputs: str) -> int:
    """Returns the field for the queue's length, which is counted in `inputs`, a noun."""
    return whole_number(
        "SLIPWAY_MAX_QUEUE_LENGTH",
        256,
        (1, 100_000),
        f"Largest number of {inputs} that wait for a batch. Further requests are answered 503. It "
        "is at least `SLIPWAY_MAX_BATCH_SIZE`.",
    )


@dataclass(frozen=True)
class SharedSettings:
    port: int = whole_number(
        "SAGEMAKER_BIND_TO_PORT",
        8080,
        (0, 65_535),
        "TCP port of the requests. SageMaker sets it for images with the label "
        "`accept-bind-to-port`. 0 takes any free port and logs it.",
    )
    bind_address: str = text("SLIPWAY_BIND_ADDRESS", "127.0.0.1", "Address to listen on.")
    model_dir: Path = directory(  # noqa: RUF009  (makes a field)
        "SM_MODEL_DIR",
        Path("/opt/ml/model"),
        "Directory with the model's files. SageMaker puts them at the default.",
    )
    max_batch_size: int = whole_number(
        "SLIPWAY_MAX_BATCH_SIZE",
        8,
        (1, 1024),
        "Largest number of inputs that are computed together.",
    )
    max_queue_length: int = queue_length("inputs")
    max_request_bytes: int = whole_number(
        "SLIPWAY_MAX_REQUEST_BYTES",
        6_291_456,
        (1, 1024**3),
        "Largest body of a request. SageMaker's own limit is 6,291,456 bytes, or 1 GB for "
        "asynchronous endpoints.",
    )

    def check_queue(self, reader: EnvironmentReader) -> None:
        if self.max_queue_length < self.max_batch_size:
            reader.problem(
                f"SLIPWAY_MAX_QUEUE_LENGTH={self.max_queue_length} is below "
                f"SLIPWAY_MAX_BATCH_SIZE={self.max_batch_size}: no batch could fill"
            )


@dataclass(frozen=True)
class ServingSettings(SharedSettings):
    max_batch_delay_milliseconds: int = whole_number(
        "SLIPWAY_MAX_BATCH_DELAY_MILLISECONDS",
        5,
        (0, 1000),
        "Longest wait for more inputs straight after a batch. An idle server never waits.",
    )
    request_timeout_seconds: int = whole_number(
        "SLIPWAY_REQUEST_TIMEOUT_SECONDS",
        55,
        (1, 3600),
        "Time from a request's headers to its answer. A later answer becomes 504. SageMaker's own "
        "limit is 60 s, or 3600 s for asynchronous endpoints.",
    )
    max_buffered_bytes: int | None = whole_number(
        "SLIPWAY_MAX_BUFFERED_BYTES",
        None,
        (1, 1024**4),
        "Largest number of bytes of the bodies that are received or parsed at a time. Further "
        "requests are answered 503. At least `SLIPWAY_MAX_REQUEST_BYTES`.",
        without="an eighth of the container's memory, at most 512 MiB",
    )
    drain_timeout_seconds: int = whole_number(
        "SLIPWAY_DRAIN_TIMEOUT_SECONDS",
        25,
        (1, 29),
        "Time that requests in flight may take after SIGTERM. SageMaker sends SIGKILL 30 s after "
        "SIGTERM.",
    )
    log_level: str = one_of(
        "SLIPWAY_LOG_LEVEL", "INFO", LOG_LEVELS, "Lowest level that is logged.", convert=str.upper
    )
    metrics_port: int | None = whole_number(
        "SLIPWAY_METRICS_PORT",
        None,
        (0, 65_535),
        "TCP port of the metrics, on the address of the requests. 0 takes any free port and logs "
        "it.",
        without="no metrics",
    )
    serves_docs: bool = flag(
        "SLIPWAY_DOCS",
        False,
        "Whether `GET /docs` and `/openapi.json` describe the requests, as on the embedded AWS.",
    )

    @classmethod
    def read(cls, reader: EnvironmentReader) -> Self:
        settings = reader.settings(cls)
        settings.check_queue(reader)
        if settings.max_buffered_bytes is not None and (
            settings.max_buffered_bytes < settings.max_request_bytes
        ):
            reader.problem(
                f"SLIPWAY_MAX_BUFFERED_BYTES={settings.max_buffered_bytes} is below "
                f"SLIPWAY_MAX_REQUEST_BYTES={settings.max_request_bytes}: the largest requests "
                "would never get in"
            )
        if settings.metrics_port and settings.metrics_port == settings.port:
            reader.problem(
                f"SLIPWAY_METRICS_PORT={settings.metrics_port} is the port of the requests "
                "(SAGEMAKER_BIND_TO_PORT)"
            )
        return settings
