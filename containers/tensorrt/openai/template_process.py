"""The process that runs a model's chat template, which is a program that came with the model.

Jinja's immutable sandbox bounds what a template can reach, and neither its memory nor its time. A
constant may have 10 GB, and a loop may never end. The kernel bounds both for this process. The
program imports nothing of Slipway, so that it starts fast.

Each line of standard input and output is JSON. The first line of input has the template, and each
further one has the messages of a chat. Each is answered by `text` or by `error`.

A template has the settings, filters and functions of transformers, so that a template of the Hub
gives the same text here
(https://huggingface.co/docs/transformers/chat_templating_writing).
"""

import contextlib
import json
import resource
import signal
import sys
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final, NoReturn

import jinja2
from jinja2 import nodes
from jinja2.ext import Extension, loopcontrols
from jinja2.parser import Parser
from jinja2.sandbox import ImmutableSandboxedEnvironment

_MOST_SHOWN_CHARACTERS: Final = 300
# Far above every model's positions.
_LONGEST_PROMPT_CHARACTERS: Final = 16 * 1024**2


class Template:
    """Makes prompts from messages; see `chat_template.ChatTemplate`."""

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
        """Returns the prompt, up to the beginning of the assistant's next message."""
        text = self._template.render(
            messages=messages,
            tools=None,
            documents=None,
            add_generation_prompt=True,
            **self._special_tokens,
        )
        if len(text) > _LONGEST_PROMPT_CHARACTERS:
            raise ValueError(f"the prompt has more than {_LONGEST_PROMPT_CHARACTERS} characters")
        return text


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
    # Not Jinja's own filter, which would escape HTML.
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
    return datetime.now().strftime(form)


def _main() -> None:
    # A Ctrl-C reaches every process of the terminal; this one ends with its input.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    template: Template | None = None
    seconds = 0.0
    for line in sys.stdin.buffer:
        # Processor time, because a busy machine is no fault of the template. The signal ends the
        # process even within one long operation.
        signal.setitimer(signal.ITIMER_PROF, seconds)
        try:
            # Any: JSON.
            document: Any = json.loads(line)
            if template is None:
                seconds = document["seconds"]
                signal.setitimer(signal.ITIMER_PROF, seconds)
                # Some systems do not have this limit. The images do.
                with contextlib.suppress(ValueError, OSError):
                    resource.setrlimit(resource.RLIMIT_AS, (document["memory_bytes"],) * 2)
                template = Template(document["source"], document["special_tokens"])
                answer = {"text": ""}
            else:
                answer = {"text": template.render(document)}
            content = json.dumps(answer)
        # A template can raise anything, a MemoryError or RecursionError too.
        except Exception as error:
            content = json.dumps({"error": _reason(error)})
        signal.setitimer(signal.ITIMER_PROF, 0)
        print(content, flush=True)


def _reason(error: Exception) -> str:
    if isinstance(error, jinja2.TemplateSyntaxError):
        return f"line {error.lineno}: {error.message}"
    if isinstance(error, MemoryError):
        return "it takes too much memory"
    return str(error)[:_MOST_SHOWN_CHARACTERS] or type(error).__name__


if __name__ == "__main__":
    _main()
