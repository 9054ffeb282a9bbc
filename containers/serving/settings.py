"""Settings from environment variables: parsed once, every problem reported at once.

A container's program makes one `EnvironmentReader`, lets the serving core and the family read
their variables from it, and calls `finish`, which raises with all problems together. A `SLIPWAY_*`
variable that nobody read is a problem too: it is a misspelt one, which would otherwise be ignored.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from containers.serving.logs import LOG_LEVELS
from containers.serving.suggestions import nearest_name_hint

_OWN_PREFIX = "SLIPWAY_"


class SettingsError(Exception):
    """The environment is not valid.

    Attributes:
        problems: one sentence per bad variable: its name, its value, what is allowed.
    """

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("; ".join(problems))
        self.problems = tuple(problems)


class EnvironmentReader:
    """Reads typed variables out of `environ` and collects the problems instead of raising."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ
        self._names_read: set[str] = set()
        self._problems: list[str] = []

    def text(self, name: str, *, default: str) -> str:
        """Returns the variable as it is; set and empty is a problem."""
        value = self._value(name)
        if value is None:
            return default
        if not value.strip():
            self.problem(f"{name} is empty: unset it for the default, {default}")
            return default
        return value

    def choice(self, name: str, *, default: str, allowed: Sequence[str]) -> str:
        """Returns the variable in upper case, one of `allowed`."""
        value = self._value(name)
        if value is None:
            return default
        if value.upper() not in allowed:
            self.problem(f"{name}={value!r} is not one of {', '.join(allowed)}")
            return default
        return value.upper()

    def optional_choice(self, name: str, *, allowed: Sequence[str]) -> str | None:
        """Returns the variable, exactly one of `allowed`, or None where it is not set."""
        value = self._value(name)
        if value is not None and value not in allowed:
            self.problem(f"{name}={value!r} is not one of {', '.join(allowed)}")
            return None
        return value

    def boolean(self, name: str, *, default: bool) -> bool:
        """Returns the variable, which is `true` or `false`."""
        value = self._value(name)
        if value is None:
            return default
        if value not in ("true", "false"):
            self.problem(f"{name}={value!r} is not one of true, false")
            return default
        return value == "true"

    def integer(self, name: str, *, default: int, minimum: int, maximum: int) -> int:
        """Returns the variable as a whole number from `minimum` to `maximum`, both included."""
        value = self.optional_integer(name, minimum=minimum, maximum=maximum)
        return default if value is None else value

    def optional_integer(self, name: str, *, minimum: int, maximum: int) -> int | None:
        """As `integer`, or None where the variable is not set."""
        value = self._value(name)
        if value is None:
            return None
        # int() would also take "1_000", " 8 " and digits of other scripts.
        number = int(value) if value.isascii() and value.isdigit() and len(value) <= 18 else None
        if number is None or not minimum <= number <= maximum:
            self.problem(f"{name}={value!r} is not a whole number from {minimum} to {maximum}")
            return None
        return number

    def problem(self, sentence: str) -> None:
        """Adds a problem, for rules that join several variables."""
        self._problems.append(sentence)

    def finish(self) -> None:
        """Ends the reading.

        Raises:
            SettingsError: a variable was bad, or a `SLIPWAY_*` variable was read by nobody.
        """
        for name in sorted(self._environ):
            if name.startswith(_OWN_PREFIX) and name not in self._names_read:
                hint = nearest_name_hint(name, self._names_read, common_prefix=_OWN_PREFIX)
                self.problem(f"{name} is not a variable of this container{hint}")
        if self._problems:
            raise SettingsError(self._problems)

    def _value(self, name: str) -> str | None:
        self._names_read.add(name)
        return self._environ.get(name)


@dataclass(frozen=True)
class ServingSettings:
    """What every family's server is told by its environment.

    Attributes:
        port: TCP port; SageMaker sets `SAGEMAKER_BIND_TO_PORT` for images whose label
            `accept-bind-to-port` allows it. 0 takes any free port and logs it.
        bind_address: address to listen on; the images set 0.0.0.0.
        model_dir: where SageMaker laid out the model data.
        max_batch_size: most inputs computed together.
        max_batch_delay_milliseconds: longest wait for more inputs, straight after a batch only;
            an idle server never waits.
        max_queue_length: most inputs waiting for a batch; beyond it requests are refused.
        request_timeout_seconds: time from the request's headers to its answer. SageMaker gives up
            at 60 s on a real-time endpoint, and at up to 3600 s on an asynchronous one.
        max_request_bytes: largest body; SageMaker's own limit is 6,291,456 bytes in real time and
            1 GB asynchronously.
        max_buffered_bytes: most bytes of bodies that are received or parsed at a time, all requests
            together; None is an eighth of the container's memory and at most 512 MiB.
        drain_timeout_seconds: how long requests in flight may take after SIGTERM; SageMaker sends
            SIGKILL 30 s after it.
        log_level: least level that is logged.
        metrics_port: TCP port of Prometheus' metrics; None is no such port. 0 takes any free port
            and logs it.
        serves_docs: whether GET /docs and /openapi.json describe the requests, as local runs do.
    """

    port: int = 8080
    bind_address: str = "127.0.0.1"
    model_dir: Path = Path("/opt/ml/model")
    max_batch_size: int = 8
    max_batch_delay_milliseconds: int = 5
    max_queue_length: int = 256
    request_timeout_seconds: int = 55
    max_request_bytes: int = 6_291_456
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
                "SAGEMAKER_BIND_TO_PORT", default=default.port, minimum=0, maximum=65_535
            ),
            bind_address=reader.text("SLIPWAY_BIND_ADDRESS", default=default.bind_address),
            model_dir=Path(reader.text("SM_MODEL_DIR", default=str(default.model_dir))),
            max_batch_size=reader.integer(
                "SLIPWAY_MAX_BATCH_SIZE", default=default.max_batch_size, minimum=1, maximum=1024
            ),
            max_batch_delay_milliseconds=reader.integer(
                "SLIPWAY_MAX_BATCH_DELAY_MILLISECONDS",
                default=default.max_batch_delay_milliseconds,
                minimum=0,
                maximum=1000,
            ),
            max_queue_length=reader.integer(
                "SLIPWAY_MAX_QUEUE_LENGTH",
                default=default.max_queue_length,
                minimum=1,
                maximum=100_000,
            ),
            request_timeout_seconds=reader.integer(
                "SLIPWAY_REQUEST_TIMEOUT_SECONDS",
                default=default.request_timeout_seconds,
                minimum=1,
                maximum=3600,
            ),
            max_request_bytes=reader.integer(
                "SLIPWAY_MAX_REQUEST_BYTES",
                default=default.max_request_bytes,
                minimum=1,
                maximum=1024**3,
            ),
            max_buffered_bytes=reader.optional_integer(
                "SLIPWAY_MAX_BUFFERED_BYTES", minimum=1, maximum=1024**4
            ),
            drain_timeout_seconds=reader.integer(
                "SLIPWAY_DRAIN_TIMEOUT_SECONDS",
                default=default.drain_timeout_seconds,
                minimum=1,
                maximum=29,
            ),
            log_level=reader.choice(
                "SLIPWAY_LOG_LEVEL", default=default.log_level, allowed=LOG_LEVELS
            ),
            metrics_port=reader.optional_integer("SLIPWAY_METRICS_PORT", minimum=0, maximum=65_535),
            serves_docs=reader.boolean("SLIPWAY_DOCS", default=default.serves_docs),
        )
        if settings.max_queue_length < settings.max_batch_size:
            reader.problem(
                f"SLIPWAY_MAX_QUEUE_LENGTH={settings.max_queue_length} is below "
                f"SLIPWAY_MAX_BATCH_SIZE={settings.max_batch_size}: no batch could fill"
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
