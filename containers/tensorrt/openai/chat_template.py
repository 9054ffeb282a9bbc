"""The chat template of a model, which makes the text of a prompt from messages.

A template is a Jinja program that comes with the model. It runs in Jinja's immutable sandbox. It
has the settings, filters and functions of transformers, so that a template of the Hub gives the
same text here
(https://huggingface.co/docs/transformers/chat_templating_writing).
"""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Final, NoReturn

import jinja2
from jinja2 import nodes
from jinja2.ext import Extension, loopcontrols
from jinja2.parser import Parser
from jinja2.sandbox import ImmutableSandboxedEnvironment

from containers.serving.errors import InvalidRequestError
from containers.serving.json_files import read_object
from containers.serving.predictor import ModelLoadError
from containers.tensorrt.model_directory import CHAT_TEMPLATE_FILE, TOKENIZER_CONFIG_FILE

# A tokenizer_config.json may have several templates, for tools or for retrieval.
_PLAIN: Final = "default"
_SPECIAL_TOKENS: Final = tuple(
    f"{name}_token" for name in ("bos", "eos", "unk", "sep", "pad", "cls", "mask")
)
_MOST_SHOWN_CHARACTERS: Final = 300


class ChatTemplate:
    """Makes prompts from messages.

    Args:
        source: the Jinja program.
        special_tokens: the model's tokens that a template may name, such as `bos_token`.

    Raises:
        jinja2.TemplateError: the source is not a template.
    """

    def __init__(self, source: str, special_tokens: Mapping[str, str]) -> None:
        environment = ImmutableSandboxedEnvironment(
            trim_blocks=True, lstrip_blocks=True, extensions=[_Generation, loopcontrols]
        )
        environment.filters["tojson"] = _to_json
        environment.globals |= {"raise_exception": _refuse, "strftime_now": _now}
        self._template = environment.from_string(source)
        self._special_tokens = dict(special_tokens)

    # Any: JSON.
    def render(self, messages: Sequence[Mapping[str, Any]]) -> str:
        """Returns the prompt, up to the beginning of the assistant's next message.

        Raises:
            InvalidRequestError: the template does not accept these messages.
        """
        try:
            return self._template.render(
                messages=messages,
                tools=None,
                documents=None,
                add_generation_prompt=True,
                **self._special_tokens,
            )
        # The template is a program of the model's author, and can raise any exception.
        except Exception as error:
            reason = str(error)[:_MOST_SHOWN_CHARACTERS]
            raise InvalidRequestError(
                f"The model's chat template does not accept these messages: {reason}"
            ) from error


def read_chat_template(model_dir: Path) -> ChatTemplate | None:
    """Returns the chat template of a model directory; None if it has none.

    chat_template.jinja counts more than `chat_template` in tokenizer_config.json, as in
    transformers.

    Raises:
        ModelLoadError: the template, or the file that has it, cannot be read.
    """
    path = model_dir / TOKENIZER_CONFIG_FILE
    config = read_object(path) if path.is_file() else {}
    source: object = _plain_template(config.get("chat_template"))
    if (model_dir / CHAT_TEMPLATE_FILE).is_file():
        path = model_dir / CHAT_TEMPLATE_FILE
        try:
            source = path.read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise ModelLoadError(f"cannot read {path}: {error}") from error
    if source is None:
        return None
    if not isinstance(source, str):
        raise ModelLoadError(
            f"{path}: chat_template must be a string, or an array of objects with name and template"
        )
    try:
        return ChatTemplate(source, _special_tokens(config))
    except jinja2.TemplateSyntaxError as error:
        raise ModelLoadError(
            f"{path}: the chat template is not valid: line {error.lineno}: {error.message}"
        ) from error


# Any: JSON.
def _plain_template(found: Any) -> object:
    """Returns the one template, or the template for plain messages among several."""
    if not isinstance(found, list):
        return found
    named = {each.get("name"): each.get("template") for each in found if isinstance(each, dict)}
    return named.get(_PLAIN)


# Any: JSON.
def _special_tokens(config: Mapping[str, Any]) -> dict[str, str]:
    """Returns the special tokens that tokenizer_config.json names, as text."""
    tokens: dict[str, str] = {}
    for name in _SPECIAL_TOKENS:
        value = config.get(name)
        text = value.get("content") if isinstance(value, dict) else value
        if isinstance(text, str):
            tokens[name] = text
    return tokens


class _Generation(Extension):
    """Accepts `{% generation %}`, which marks the assistant's text for training."""

    tags = {"generation"}  # noqa: RUF012  (Jinja's own form)

    def parse(self, parser: Parser) -> list[nodes.Node]:
        """Returns the statements inside the tag, as if the tag were not there."""
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


# Any: JSON, and json.dumps's arguments.
def _to_json(
    value: Any,
    ensure_ascii: bool = False,
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    """Returns JSON. Jinja's own filter would escape HTML."""
    return json.dumps(
        value,
        ensure_ascii=ensure_ascii,
        indent=indent,
        separators=separators,
        sort_keys=sort_keys,
    )


def _refuse(message: str) -> NoReturn:
    raise jinja2.TemplateError(message)


def _now(form: str) -> str:
    """Returns the time of the container's clock."""
    return datetime.now().strftime(form)
