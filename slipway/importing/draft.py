"""A config that was made of something else: its content, its guesses, and all that it lacks."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from slipway.config.editor_schema import FIRST_LINE
from slipway.config.secrets import secret_kind
from slipway.config.yaml_text import comment_lines, lines

FieldName = tuple[str, ...]
_HIDDEN = "(hidden)"
# Settings whose value is a secret, whatever its form.
_TOKENS = ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "HUGGINGFACE_HUB_TOKEN", "HF_API_TOKEN",
           "option.hf_token", "option.use_auth_token")  # fmt: skip
NO_SECRETS = "a secret belongs in no file. `slipway publish` takes HF_TOKEN from the shell."
SLIPWAYS_ROLE = (
    "Slipway makes a role for each endpoint, with the rights that it needs. An existing role is "
    "named for one account, in `endpoint.execution_role_arn`."
)
_LONGEST_SHOWN = 200
DEFAULT_LATENCY_MILLISECONDS = 30_000
"""Half of the time after which SageMaker ends a realtime request."""


@dataclass(frozen=True)
class KnownFacts:
    """The facts that the user gave, or the source tells; None for those that neither does.

    `weights` is the section `artifacts.weights`. `shape` and `endpoint` are further fields of
    the sections `model` and `endpoint`.
    """

    name: str
    instance: str | None = None
    framework: str | None = None
    version: str | None = None
    family: str | None = None
    parameters: int | None = None
    weights: Mapping[str, Any] | None = None
    size_gb: float | None = None
    shape: Mapping[str, Any] = field(default_factory=dict)
    endpoint: Mapping[str, Any] = field(default_factory=dict)
    tags: Mapping[str, str] = field(default_factory=dict)
    latency_milliseconds: int | None = None

    @property
    def is_told(self) -> bool:
        return self.family is not None and self.parameters is not None

    @property
    def artifacts(self) -> dict[str, Any]:
        size = {} if self.size_gb is None else {"size_gb": self.size_gb}
        return {"weights": dict(self.weights or {}), **size}

    def content(
        self,
        serving: Mapping[str, Any],
        alarms: Mapping[str, Any],
        *,
        artifacts: Mapping[str, Any] | None = None,
        endpoint: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Returns the config; without `endpoint`, that section has the user's answers alone."""
        return {
            "name": self.name,
            "model": {"family": self.family, "parameters": self.parameters, **self.shape},
            "serving": serving,
            **({} if artifacts is None else {"artifacts": artifacts}),
            "endpoint": endpoint or {"instances": [self.instance], **self.endpoint},
            "alarms": alarms,
            **({"tags": dict(self.tags)} if self.tags else {}),
        }


@dataclass(frozen=True)
class Guess:
    """The reason for a value of the config that the source does not have, as a sentence."""

    reason: str


@dataclass(frozen=True)
class Setting:
    """A setting of the source that the config lacks, or has with another value.

    Name and value are as the source has them. The reason is a sentence.
    """

    name: str
    value: str
    reason: str

    def __post_init__(self) -> None:
        """Hides a secret, which no file and no report may show, and control characters."""
        object.__setattr__(self, "reason", printable(self.reason, None))
        if is_secret(self.name, self.value):
            object.__setattr__(self, "value", _HIDDEN)

    @property
    def shown(self) -> str:
        """Returns the setting for people, on one line."""
        return f"{printable(self.name, None)}={printable(self.value)}"


@dataclass(frozen=True)
class Draft:
    content: Mapping[str, Any]
    guesses: Mapping[FieldName, Guess] = field(default_factory=dict)
    changed: Sequence[Setting] = ()
    left_out: Sequence[Setting] = ()
    files: Mapping[str, bytes] = field(default_factory=dict)

    def render(self, origin: str) -> str:
        """Returns the YAML: a comment above each guess, and a list of what the config lacks."""
        head = comment_lines(f"Imported from {printable(origin)}.")
        return "\n".join([FIRST_LINE, *head, *lines(self.content, self._comment), *self._lists()])

    def value(self, path: FieldName) -> Any:
        found: Any = self.content
        for name in path:
            found = found[name]
        return found

    def _comment(self, path: FieldName) -> str:
        guess = self.guesses.get(path)
        return "" if guess is None else f"Guess: {guess.reason}"

    def _lists(self) -> Iterator[str]:
        for title, settings in (
            ("Changed:", self.changed),
            ("Left out, because the config cannot say it or the image does not read it:",
             self.left_out),
        ):  # fmt: skip
            if settings:
                yield ""
                yield from comment_lines(title)
            for setting in settings:
                yield from comment_lines(f"- {setting.shown}: {setting.reason}", hanging="  ")
        yield ""


@dataclass(frozen=True)
class ImportResult:
    """The result of an import.

    Args:
        added: keys of serving.properties that Slipway writes in addition.
        first: steps before the config can be published.
        then: steps after the endpoint is deployed.
    """

    draft: Draft
    origin: str
    added: Mapping[str, str] = field(default_factory=dict)
    first: Sequence[str] = ()
    then: Sequence[str] = ()


def is_secret(name: str, value: str) -> bool:
    """Returns whether a setting is a secret, by its name or by the form of its value."""
    return name in _TOKENS or secret_kind((name,), value) is not None


def printable(text: str, longest: int | None = _LONGEST_SHOWN) -> str:
    """Returns a text of a file on one line, with escapes for what is not printed, and cut."""
    shown = text if text.isprintable() else json.dumps(text)[1:-1]
    return shown if longest is None or len(shown) <= longest else f"{shown[:longest]}..."


def alarms_of(given: KnownFacts, reader: str) -> tuple[dict[str, Any], dict[FieldName, Guess]]:
    """Returns the section `alarms`, and its guess where the user gave no objective."""
    name = "model_latency_p99_milliseconds"
    if given.latency_milliseconds is not None:
        return {name: given.latency_milliseconds}, {}
    reason = f"{reader} has no objective. This is half of SageMaker's limit; set your own."
    return {name: DEFAULT_LATENCY_MILLISECONDS}, {("alarms", name): Guess(reason)}
