"""Settings from environment variables: parsed once, every problem reported at once.

A container's program makes one `EnvironmentReader` and passes it to the serving core and the family
to read their variables. Then it calls `finish`, which raises with all problems together. A
`SLIPWAY_*` variable that was never read is a problem too, because a misspelt variable would
otherwise be ignored. It keeps to Python 3.10, which some of Triton's images have.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from containers.serving.logs import LOG_LEVELS
from containers.serving.suggestions import nearest_name_hint

if TYPE_CHECKING:
    from typing import Self

_OWN_PREFIX = "SLIPWAY_"

ValueT = TypeVar("ValueT")


class SettingsError(Exception):
    """The environment is not valid.

    Attributes:
        problems: one sentence per bad variable, with its name, its value and the allowed values.
    """

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("; ".join(problems))
        self.problems = tuple(problems)


@dataclass(frozen=True)
class Variable:
    """A variable that a container reads; docs/reference/variables.md is generated from these.

    Attributes:
        name: the environment variable.
        values: its type and bounds, in words.
        default: the value if it is not set; None if there is none.
        meaning: whole sentences.
        without: effect of an unset variable, if `default` does not say it all.
    """

    name: str
    values: str
    default: str | None
    meaning: str
    without: str


class EnvironmentReader:
    """Reads typed variables from `environ`; collects problems instead of raising them."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ
        self._read: dict[str, Variable] = {}
        self._problems: list[str] = []

    @property
    def variables(self) -> tuple[Variable, ...]:
        """Returns the variables read so far, in that order."""
        return tuple(self._read.values())

    def text(self, name: str, *, default: str, meaning: str = "", without: str = "") -> str:
        """Returns the variable unchanged; a variable that is set but empty is a problem.

        Args:
            name: the environment variable.
            default: returned if the variable is not set, or after a problem.
            meaning: see `Variable`.
            without: see `Variable`.
        """
        value = self._value(Variable(name, "text", default, meaning, without), str, default)
        if not value.strip():
            self.problem(f"{name} is empty: unset it for the default, {default}")
            return default
        return value

    def choice(self, name: str, *, default: str, allowed: Sequence[str], meaning: str = "") -> str:
        """Returns the variable in upper case, one of `allowed`.

        Args:
            name: the environment variable.
            default: returned if the variable is not set, or after a problem.
            allowed: values in upper case.
            meaning: see `Variable`.
        """
        variable = Variable(name, _one_of(allowed), default, meaning, "")
        known = {value: value for value in allowed}
        return self._value(variable, lambda text: known.get(text.upper()), default)

    def optional_choice(
        self, name: str, *, allowed: Sequence[str], meaning: str = "", without: str = ""
    ) -> str | None:
        """Returns the variable, exactly one of `allowed`, or None if it is not set.

        Args:
            name: the environment variable.
            allowed: accepted values.
            meaning: see `Variable`.
            without: see `Variable`.
        """
        variable = Variable(name, _one_of(allowed), None, meaning, without)
        return self._value(variable, {value: value for value in allowed}.get, None)

    def boolean(self, name: str, *, default: bool, meaning: str = "") -> bool:
        """Returns the variable, which is `true` or `false`.

        Args:
            name: the environment variable.
            default: returned if the variable is not set, or after a problem.
            meaning: see `Variable`.
        """
        values = {"true": True, "false": False}
        variable = Variable(name, _one_of(values), "true" if default else "false", meaning, "")
        return self._value(variable, values.get, default)

    def integer(
        self, name: str, *, default: int, minimum: int, maximum: int, meaning: str = ""
    ) -> int:
        """Returns the variable as a whole number from `minimum` to `maximum`.

        Args:
            name: the environment variable.
            default: returned if the variable is not set, or after a problem.
            minimum: smallest value that is accepted.
            maximum: largest value that is accepted.
            meaning: see `Variable`.
        """
        bounds = f"whole number from {minimum} to {maximum}"
        variable = Variable(name, bounds, str(default), meaning, "")
        return self._value(variable, _number_in(minimum, maximum), default, article="a ")

    def optional_integer(
        self, name: str, *, minimum: int, maximum: int, meaning: str = "", without: str = ""
    ) -> int | None:
        """Returns the variable as a whole number, or None if it is not set.

        Args:
            name: the environment variable.
            minimum: smallest value that is accepted.
            maximum: largest value that is accepted.
            meaning: see `Variable`.
            without: see `Variable`.
        """
        bounds = f"whole number from {minimum} to {maximum}"
        variable = Variable(name, bounds, None, meaning, without)
        return self._value(variable, _number_in(minimum, maximum), None, article="a ")

    def problem(self, sentence: str) -> None:
        """Adds a problem, for rules about several variables together."""
        self._problems.append(sentence)

    def finish(self) -> None:
        """Raises if there were problems; called after all variables were read.

        Raises:
            SettingsError: a variable was bad, or a `SLIPWAY_*` variable was never read.
        """
        for name in sorted(self._environ):
            if name.startswith(_OWN_PREFIX) and name not in self._read:
                hint = nearest_name_hint(name, self._read, common_prefix=_OWN_PREFIX)
                self.problem(f"{name} is not a variable of this container{hint}")
        if self._problems:
            raise SettingsError(self._problems)

    def _value(
        self,
        variable: Variable,
        parse: Callable[[str], ValueT | None],
        default: ValueT,
        article: str = "",
    ) -> ValueT:
        self._read[variable.name] = variable
        text = self._environ.get(variable.name)
        value = default if text is None else parse(text)
        if text is not None and value is None:
            self.problem(f"{variable.name}={text!r} is not {article}{variable.values}")
        return default if value is None else value


def _number_in(minimum: int, maximum: int) -> Callable[[str], int | None]:
    def parse(text: str) -> int | None:
        # int() would also accept "1_000", " 8 " and digits of other scripts.
        is_plain = text.isascii() and text.isdigit() and len(text) <= 18
        return int(text) if is_plain and minimum <= int(text) <= maximum else None

    return parse


def _one_of(allowed: Iterable[str]) -> str:
    return f"one of {', '.join(allowed)}"


@dataclass(frozen=True)
class SharedSettings:
    """The settings that every container of Slipway has.

    `read_shared` says what each field means, beside its variable.
    """

    bind_address: str = "127.0.0.1"
    model_dir: Path = Path("/opt/ml/model")
    max_batch_size: int = 8
    max_queue_length: int = 256
    max_request_bytes: int = 6_291_456

    @staticmethod
    def read_shared(reader: EnvironmentReader, waiting: str) -> SharedSettings:
        """Reads these settings; problems stay with `reader` until its `finish`.

        Args:
            reader: has the variables.
            waiting: what the queue counts, as a noun.
        """
        default = SharedSettings()
        settings = SharedSettings(
            bind_address=reader.text(
                "SLIPWAY_BIND_ADDRESS",
                default=default.bind_address,
                meaning="Address to listen on.",
            ),
            model_dir=Path(
                reader.text(
                    "SM_MODEL_DIR",
                    default=str(default.model_dir),
                    meaning="Directory with the model's files. SageMaker puts them at the default.",
                )
            ),
            max_batch_size=reader.integer(
                "SLIPWAY_MAX_BATCH_SIZE",
                default=default.max_batch_size,
                minimum=1,
                maximum=1024,
                meaning="Largest number of inputs that are computed together.",
            ),
            max_queue_length=reader.integer(
                "SLIPWAY_MAX_QUEUE_LENGTH",
                default=default.max_queue_length,
                minimum=1,
                maximum=100_000,
                meaning=f"Largest number of {waiting} that wait for a batch. Further requests are "
                "answered 503. It is at least `SLIPWAY_MAX_BATCH_SIZE`.",
            ),
            max_request_bytes=reader.integer(
                "SLIPWAY_MAX_REQUEST_BYTES",
                default=default.max_request_bytes,
                minimum=1,
                maximum=1024**3,
                meaning="Largest body of a request. SageMaker's own limit is 6,291,456 bytes, or "
                "1 GB for asynchronous endpoints.",
            ),
        )
        if settings.max_queue_length < settings.max_batch_size:
            reader.problem(
                f"SLIPWAY_MAX_QUEUE_LENGTH={settings.max_queue_length} is below "
                f"SLIPWAY_MAX_BATCH_SIZE={settings.max_batch_size}: no batch could fill"
            )
        return settings


@dataclass(frozen=True)
class ServingSettings(SharedSettings):
    """The settings of every family's server, from its environment.

    `read` says what each field means, beside its variable. None is no metrics port, and a limit of
    the buffers that follows the container's memory.
    """

    port: int = 8080
    max_batch_delay_milliseconds: int = 5
    request_timeout_seconds: int = 55
    max_buffered_bytes: int | None = None
    drain_timeout_seconds: int = 25
    log_level: str = "INFO"
    metrics_port: int | None = None
    serves_docs: bool = False

    @classmethod
    def read(cls, reader: EnvironmentReader) -> Self:
        """Reads the settings; problems stay with `reader` until its `finish`."""
        default = cls()
        settings = cls(
            port=reader.integer(
                "SAGEMAKER_BIND_TO_PORT",
                default=default.port,
                minimum=0,
                maximum=65_535,
                meaning="TCP port of the requests. SageMaker sets it for images with the label "
                "`accept-bind-to-port`. 0 takes any free port and logs it.",
            ),
            **vars(cls.read_shared(reader, waiting="inputs")),
            max_batch_delay_milliseconds=reader.integer(
                "SLIPWAY_MAX_BATCH_DELAY_MILLISECONDS",
                default=default.max_batch_delay_milliseconds,
                minimum=0,
                maximum=1000,
                meaning="Longest wait for more inputs straight after a batch. An idle server never "
                "waits.",
            ),
            request_timeout_seconds=reader.integer(
                "SLIPWAY_REQUEST_TIMEOUT_SECONDS",
                default=default.request_timeout_seconds,
                minimum=1,
                maximum=3600,
                meaning="Time from a request's headers to its answer. A later answer becomes 504. "
                "SageMaker's own limit is 60 s, or 3600 s for asynchronous endpoints.",
            ),
            max_buffered_bytes=reader.optional_integer(
                "SLIPWAY_MAX_BUFFERED_BYTES",
                minimum=1,
                maximum=1024**4,
                meaning="Largest number of bytes of the bodies that are received or parsed at a "
                "time. Further requests are answered 503. At least `SLIPWAY_MAX_REQUEST_BYTES`.",
                without="an eighth of the container's memory, at most 512 MiB",
            ),
            drain_timeout_seconds=reader.integer(
                "SLIPWAY_DRAIN_TIMEOUT_SECONDS",
                default=default.drain_timeout_seconds,
                minimum=1,
                maximum=29,
                meaning="Time that requests in flight may take after SIGTERM. SageMaker sends "
                "SIGKILL 30 s after SIGTERM.",
            ),
            log_level=reader.choice(
                "SLIPWAY_LOG_LEVEL",
                default=default.log_level,
                allowed=LOG_LEVELS,
                meaning="Lowest level that is logged.",
            ),
            metrics_port=reader.optional_integer(
                "SLIPWAY_METRICS_PORT",
                minimum=0,
                maximum=65_535,
                meaning="TCP port of the metrics, on the address of the requests. 0 takes any free "
                "port and logs it.",
                without="no metrics",
            ),
            serves_docs=reader.boolean(
                "SLIPWAY_DOCS",
                default=default.serves_docs,
                meaning="Whether `GET /docs` and `/openapi.json` describe the requests, as on the "
                "embedded AWS.",
            ),
        )
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
