"""The chat template of a model, which makes the text of a prompt from messages.

A template is a program that came with the model. It runs in a process of its own
(`template_process`), because it may take any memory and time. If that process dies, the next chat
starts another one. The event loop and the other requests never wait for a template.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import weakref
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from containers.serving.errors import InvalidRequestError
from containers.serving.json_files import read_object
from containers.serving.predictor import ModelLoadError
from containers.tensorrt.model_directory import CHAT_TEMPLATE_FILE, TOKENIZER_CONFIG_FILE

# Of processor time, to build the template or to render a prompt. Both usually take milliseconds.
_MOST_SECONDS: Final = 2.0
_MOST_MEMORY_MIB: Final = 512
# The templates of the Hub have at most some tens of thousands.
_LONGEST_SOURCE: Final = 1_000_000
_PROGRAM: Final = Path(__file__).with_name("template_process.py")

# A tokenizer_config.json may have several templates, for tools or for retrieval.
_PLAIN: Final = "default"
_SPECIAL_TOKENS: Final = tuple(
    f"{name}_token" for name in ("bos", "eos", "unk", "sep", "pad", "cls", "mask")
)


class ChatTemplateError(Exception):
    """The template cannot be built or rendered; the message says why."""


class ChatTemplate:
    """Makes prompts from messages, one after the other.

    The special tokens, such as `bos_token`, are those that a template may name. A
    `ChatTemplateError` says that the source is no Jinja template, or takes too much memory or time.
    """

    def __init__(self, source: str, special_tokens: Mapping[str, str]) -> None:
        if len(source) > _LONGEST_SOURCE:
            raise ChatTemplateError(f"it has more than {_LONGEST_SOURCE} characters")
        self._program = {
            "source": source,
            "special_tokens": dict(special_tokens),
            "seconds": _MOST_SECONDS,
            "memory_bytes": _MOST_MEMORY_MIB * 1024**2,
        }
        self._lock = threading.Lock()
        self._process = self._start()

    # Any: JSON.
    def render(self, messages: Sequence[Mapping[str, Any]]) -> str:
        """Returns the prompt, up to the beginning of the assistant's next message.

        An `InvalidRequestError` says why the template does not accept these messages.
        """
        try:
            with self._lock:
                if self._process.poll() is not None:
                    self._end()
                    self._process = self._start()
                return _ask(self._process, messages)
        except ChatTemplateError as error:
            raise InvalidRequestError(
                f"The model's chat template does not accept these messages: {error}"
            ) from error

    def _start(self) -> "subprocess.Popen[bytes]":
        try:
            process = subprocess.Popen(  # noqa: S603  (a module of Slipway)
                # Without the module's folder among those that modules are imported from.
                [sys.executable, "-P", os.fspath(_PROGRAM)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
            )
        except OSError as error:
            raise ChatTemplateError(f"its process does not start: {error.strerror}") from error
        self._end = weakref.finalize(self, _end, process)
        try:
            _ask(process, self._program)
        except ChatTemplateError:
            self._end()
            raise
        return process


# Any: JSON.
def _ask(process: "subprocess.Popen[bytes]", document: Any) -> str:
    """Returns the answer; a `ChatTemplateError` says why there is none."""
    stdin, stdout = process.stdin, process.stdout
    assert stdin is not None  # noqa: S101  (a pipe)
    assert stdout is not None  # noqa: S101  (a pipe)
    line = b""
    # Raised if the process has died; then it has not answered either.
    with contextlib.suppress(BrokenPipeError):
        stdin.write(json.dumps(document).encode() + b"\n")
        stdin.flush()
        line = stdout.readline()
    if line.endswith(b"\n"):
        answer = json.loads(line)
        if "error" in answer:
            raise ChatTemplateError(answer["error"])
        return str(answer["text"])
    code = process.wait()
    if code == -signal.SIGPROF:
        raise ChatTemplateError(f"it takes more than {_MOST_SECONDS:g} seconds")
    raise ChatTemplateError(f"its process ended with {code}")


def _end(process: "subprocess.Popen[bytes]") -> None:
    process.kill()
    process.communicate()


def read_chat_template(model_dir: Path) -> ChatTemplate | None:
    """Returns the chat template of a model directory; None if it has none.

    chat_template.jinja counts more than `chat_template` in tokenizer_config.json, as in
    transformers.
    """
    path = model_dir / TOKENIZER_CONFIG_FILE
    config = read_object(path) if path.is_file() else {}
    source: object = _plain_template(config.get("chat_template"))
    if (model_dir / CHAT_TEMPLATE_FILE).is_file():
        path = model_dir / CHAT_TEMPLATE_FILE
        try:
            with path.open(encoding="utf-8") as file:
                source = file.read(_LONGEST_SOURCE + 1)
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
    except ChatTemplateError as error:
        raise ModelLoadError(f"{path}: the chat template is not valid: {error}") from error


# Any: JSON.
def _plain_template(found: Any) -> object:
    """Returns the one template, or the template for plain messages among several."""
    if not isinstance(found, list):
        return found
    named = [each for each in found if isinstance(each, dict) and each.get("name") == _PLAIN]
    return named[-1].get("template") if named else None


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
