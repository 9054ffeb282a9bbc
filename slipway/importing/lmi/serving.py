"""Makes the section `serving` of the settings of an LMI container, for one image."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, get_args

from slipway.codes.code import Code
from slipway.config.sections.serving.lmi import LmiServing
from slipway.config.sections.serving.shared import LmiDtype
from slipway.errors import UserError, did_you_mean
from slipway.facts.lmi.options import OptionFacts
from slipway.facts.lmi.versions import lmi_version
from slipway.importing.draft import (
    NO_SECRETS,
    FieldName,
    Guess,
    Setting,
    is_secret,
    printable,
)
from slipway.importing.lmi.source import (
    REQUIREMENTS_FILE,
    REVISION_KEY,
    SCRIPT_FILE,
    WEIGHTS_KEYS,
    LmiSource,
)
from slipway.planning.families.lmi.handlers import OUR_HANDLERS
from slipway.planning.families.lmi.setup import LmiSetup, lmi_setup, ordered, rendered

_OPTION = "option."
_ENTRY_POINT = "option.entryPoint"
_VARIABLES = "option.env"
# SageMaker's limits of a realtime request, and of a start.
LONGEST_REQUEST_SECONDS = 60
LONGEST_START_SECONDS = 3600
# Keys with a field of their own, in the config's order. The rest of this module has the others.
_FIELDS: Mapping[str, str] = {
    "option.pipeline_parallel_degree": "pipeline_parallel_degree",
    "batch_size": "max_batch_size",
    "max_dynamic_batch_size": "max_batch_size",
    "max_batch_delay": "max_batch_delay_milliseconds",
    "job_queue_size": "max_queue_length",
    "option.rolling_batch": "rolling_batch",
    "option.max_rolling_batch_size": "max_rolling_batch_size",
    "option.trust_remote_code": "trust_remote_code",
}
_TEXT_FIELDS = ("rolling_batch",)
_TIMEOUTS: Mapping[str, tuple[str, int, str]] = {
    "option.predict_timeout": (
        "predict_timeout_seconds",
        LONGEST_REQUEST_SECONDS,
        "SageMaker ends realtime requests after 60 s.",
    ),
    "option.model_loading_timeout": (
        "model_loading_timeout_seconds",
        LONGEST_START_SECONDS,
        "SageMaker ends the start of a container after 3600 s at the latest.",
    ),
}
_DTYPES: Mapping[str, str] = {
    **{name: name for name in get_args(LmiDtype)},
    "float32": "fp32",
    "float": "fp32",
    "float16": "fp16",
    "half": "fp16",
    "bfloat16": "bf16",
}
# Types whose values are texts, whatever they look like.
_TEXTS = ("str", "path")
# Engines that start a process on each of several GPUs.
_PARALLEL_ENGINES = ("DeepSpeed", "FasterTransformer", "MPI")
# Slipway's image has one of them, and its package names it.
_OWN_HANDLERS = frozenset(handler.module for handler in OUR_HANDLERS.values())
# From this version on the server spreads a model over all GPUs by itself (LmiConfigRecommender).
_SPREADS_SINCE = (0, 27, 0)


@dataclass
class ServingDraft:
    """The section in the making.

    Args:
        keys: the setting that each field is from, by the field's path in the config.
        has_script: whether a file of the source is the handler, or has formatters.
        copies_files: whether the project gets the files of the source.
    """

    section: dict[str, Any]
    keys: dict[FieldName, str] = field(default_factory=dict)
    guesses: dict[FieldName, Guess] = field(default_factory=dict)
    changed: list[Setting] = field(default_factory=list)
    left_out: list[Setting] = field(default_factory=list)
    has_script: bool = False
    copies_files: bool = False


def serving_draft(source: LmiSource, name: str, framework: str, version: str) -> ServingDraft:
    return _Maker(source, name, framework, version).made()


class _Maker:
    """Takes one setting after the other out of the source's, until none is left."""

    def __init__(self, source: LmiSource, name: str, framework: str, version: str) -> None:
        self._source = source
        self._name = name
        self._facts = lmi_version(framework, version)
        self._left = {
            key: value.strip()
            for key, value in source.settings.items()
            if key not in (*WEIGHTS_KEYS, REVISION_KEY)
        }
        self._draft = ServingDraft(
            {"container": "lmi", "framework": framework, "version": version},
            changed=[
                Setting(source.name_of(key), value, "without the white space around it now.")
                for key, value in source.settings.items()
                if value != value.strip()
            ],
            left_out=list(source.repeated),
        )
        secrets = [key for key, value in self._left.items() if is_secret(key, value)]
        for key in secrets:
            if key != _VARIABLES:  # each of its variables is looked at
                self._leave_out(key, NO_SECRETS)
                del self._left[key]

    def made(self) -> ServingDraft:
        draft = self._draft
        self._take_handler()
        # The reader of the rest follows from these and from the batches.
        for key, name in _FIELDS.items():
            if key in self._left and self._is_read_as_field(key):
                value = self._left.pop(key)
                self._set(name, value if name in _TEXT_FIELDS else _typed(value), key)
        self._take_timeouts()
        draft.section["dtype"] = "auto"
        is_formatter = self._facts.reads_formatters and not self._source.has_handler
        if draft.has_script and is_formatter and "entry_point" not in draft.section:
            self._take_formatters()
        setup = lmi_setup(self._serving())
        self._drop_defaults(setup)
        self._take_degree(setup)
        self._take_dtype(setup)
        self._take_variables()
        self._take_options(setup)
        fields = list(LmiServing.model_fields)
        draft.section = dict(sorted(draft.section.items(), key=lambda item: fields.index(item[0])))
        return draft

    def _set(self, name: str, value: Any, key: str) -> None:
        self._draft.section[name] = value
        self._draft.keys["serving", name] = key

    def _leave_out(self, key: str, reason: str) -> None:
        source = self._source
        self._draft.left_out.append(Setting(source.name_of(key), source.settings[key], reason))

    def _guess(self, name: str, value: Any, reason: str) -> None:
        self._draft.section[name] = value
        self._draft.guesses["serving", name] = Guess(reason)

    def _serving(self) -> LmiServing:
        """Returns the section, with the defaults of fields whose values the schema refuses."""
        values = {
            name: info.get_default(call_default_factory=True)
            for name, info in LmiServing.model_fields.items()
        }
        checked = LmiServing.model_construct(**values | self._draft.section)
        numbers = {
            name: values[name]
            for name in ("max_batch_size", "pipeline_parallel_degree")
            if not isinstance(getattr(checked, name), int)
        }
        return checked.model_copy(update=numbers)

    def _is_read_as_field(self, key: str) -> bool:
        # A rule names the keys of the server that the oldest versions do not read.
        return key in ("batch_size", "job_queue_size", "max_batch_delay") or (
            key.startswith(_OPTION) or key in self._facts.server_keys
        )

    # The handler

    def _take_handler(self) -> None:
        draft, files = self._draft, self._source.files
        if "engine" in self._left:
            self._set("engine", self._left.pop("engine"), "engine")
        entry_point = self._left.pop(_ENTRY_POINT, None)
        if self._source.is_built:
            draft.section["image"] = "built"
            if entry_point in _OWN_HANDLERS:
                entry_point = None
        if entry_point is None and SCRIPT_FILE in files:
            entry_point = SCRIPT_FILE
        if entry_point is not None and entry_point.lower().startswith("http"):
            raise UserError.of(
                Code.IMPORT_HANDLER,
                f"`{self._source.name_of(_ENTRY_POINT)}` is an address: the server would download "
                "its handler",
                f"Save the file as {SCRIPT_FILE} beside {self._source.kind}, and remove the line.",
            )
        if entry_point is not None and entry_point.endswith(".py"):
            self._take_script(entry_point)
            return
        if entry_point is not None:
            self._set("entry_point", entry_point, _ENTRY_POINT)
        if SCRIPT_FILE in files and not self._source.has_handler and self._facts.reads_formatters:
            draft.has_script = draft.copies_files = True
            draft.section["script"] = script_directory(self._name)
        elif REQUIREMENTS_FILE in files and SCRIPT_FILE not in files:
            draft.copies_files = True
            draft.section["requirements"] = script_directory(self._name)
        elif files:
            reason = "no model.py is there, so the server runs a handler of the image."
            if entry_point is not None:
                reason = f"the server runs {printable(entry_point)}, a handler of the image."
            draft.left_out.append(Setting("files beside it", ", ".join(files), reason))

    def _take_formatters(self) -> None:
        setup = lmi_setup(self._serving().model_copy(update={"script": None}))
        if setup.entry_point is not None:
            reason = "model.py has no `handle`, so this handler answers, and runs its formatters."
            self._guess("entry_point", setup.entry_point, reason)

    def _take_script(self, entry_point: str) -> None:
        draft, files = self._draft, self._source.files
        name = entry_point.removeprefix("./")
        if name not in files:
            raise UserError.of(
                Code.IMPORT_HANDLER,
                f"{self._source.origin} names the handler {printable(entry_point)}, and there is "
                "no such file beside it",
                f"Copy the file there. If the image has the handler, remove the line "
                f"`{self._source.name_of(_ENTRY_POINT)}`.",
            )
        if name != SCRIPT_FILE and SCRIPT_FILE in files:
            raise UserError.of(
                Code.IMPORT_HANDLER,
                f"{self._source.origin} names the handler {name}, and there is a {SCRIPT_FILE} "
                "beside it, which Slipway would start",
                f"Rename {name} to {SCRIPT_FILE} and the other file to another name.",
            )
        draft.has_script = draft.copies_files = True
        draft.section["script"] = script_directory(self._name)
        if name != SCRIPT_FILE:
            setting = Setting(
                self._source.name_of(_ENTRY_POINT),
                entry_point,
                f"copied as {SCRIPT_FILE}, which is the name that Slipway's package has for it.",
            )
            draft.changed.append(setting)

    def _drop_defaults(self, setup: LmiSetup) -> None:
        """Removes an engine and an entry point that the image takes by itself."""
        section, given = self._draft.section, self._serving()
        for name in ("entry_point", "engine"):
            if name not in section or (name == "entry_point" and self._draft.has_script):
                continue
            without = lmi_setup(given.model_copy(update={name: None}))
            same = (without.engine, without.entry_point) == (setup.engine, setup.entry_point)
            if same and without.handler is not None:
                del section[name]
                given = given.model_copy(update={name: None})

    # Fields

    def _take_timeouts(self) -> None:
        for key, (name, longest, reason) in _TIMEOUTS.items():
            if key not in self._left:
                continue
            value = _typed(self._left.pop(key))
            if isinstance(value, int) and value > longest:
                source = self._source
                self._draft.changed.append(
                    Setting(source.name_of(key), source.settings[key], f"{longest} now. {reason}")
                )
                value = longest
            self._set(name, value, key)

    def _take_degree(self, setup: LmiSetup) -> None:
        key, name = "option.tensor_parallel_degree", "tensor_parallel_degree"
        if key in self._left:
            value = self._left.pop(key)
            self._set(name, value if value == "max" else _typed(value), key)
            return
        spreads = (
            setup.engine in _PARALLEL_ENGINES or ordered(setup.version.version) >= _SPREADS_SINCE
        )
        if spreads:
            reason = "without a degree this image spreads a copy over all accelerators."
            self._guess(name, "max", reason)
        else:
            reason = (
                "without a degree this image loads a copy on each accelerator; Slipway writes one."
            )
            self._guess(name, 1, reason)

    def _take_dtype(self, setup: LmiSetup) -> None:
        key = f"option.{setup.dtype_key}"
        if key in self._left:
            value = self._left.pop(key)
            self._set("dtype", _DTYPES.get(value, value), key)
            return
        facts = setup.options.get(setup.dtype_key)
        if facts is None or facts.allowed is None or "auto" in facts.allowed:
            self._guess(
                "dtype", "auto", f"{self._source.kind} names none. This is the checkpoint's own."
            )
        elif facts.default is not None:
            self._guess("dtype", facts.default, "the default of the image's handler.")
        else:
            self._guess(
                "dtype",
                "fp16" if "fp16" in facts.allowed else facts.allowed[0],
                f"{self._source.kind} names none, and the handler takes the checkpoint's own.",
            )

    def _take_variables(self) -> None:
        variables = dict(self._source.environment)
        key = _VARIABLES
        if key in self._left:
            pairs = [pair.partition("=") for pair in self._left.pop(key).split(",")]
            variables |= {name.strip(): value.strip() for name, sign, value in pairs if sign}
            self._draft.changed.append(
                Setting(
                    self._source.name_of(key),
                    self._source.settings[key],
                    "variables of the container now, in `serving.environment`.",
                )
            )
        for name in [name for name, value in variables.items() if is_secret(name, value)]:
            self._draft.left_out.append(Setting(name, variables.pop(name), NO_SECRETS))
        if variables:
            self._draft.section["environment"] = variables

    # Options

    def _take_options(self, setup: LmiSetup) -> None:
        options: dict[str, Any] = {}
        for key, value in self._left.items():
            reason = _unreadable(key, setup)
            if reason is not None:
                self._leave_out(key, reason)
                continue
            name = key.removeprefix(_OPTION)
            facts = setup.every_option.get(name) or setup.version.server_keys.get(name)
            options[name] = _option_value(value, facts)
            self._draft.keys["serving", "options", name] = key
        if options:
            self._draft.section["options"] = options


def script_directory(name: str) -> str:
    """Returns the folder of the project that gets a model's handler."""
    return f"handlers/{name}"


def _unreadable(key: str, setup: LmiSetup) -> str | None:
    """Returns why a key cannot be an option of the config, as a sentence; None if it can."""
    name = key.removeprefix(_OPTION)
    if key.startswith(_OPTION):
        if setup.is_server_key(name):
            return f"{setup.image} reads `{name}` without `option.` only."
        return None
    if setup.is_server_key(name):
        return None
    known = [*setup.version.server_keys, *(f"{_OPTION}{option}" for option in setup.options)]
    return f"{setup.image} has no such key of the server. {did_you_mean(key, known)}".rstrip()


def _typed(text: str) -> Any:
    """Returns a number or a truth value where a text is one, and nothing is lost."""
    if re.fullmatch(r"0|[1-9][0-9]{0,15}", text):
        return int(text)
    return {"true": True, "false": False}.get(text.lower(), text)


def _option_value(text: str, facts: OptionFacts | None) -> Any:
    """Returns an option's value, which is written to the file as it stands in the source."""
    if facts is not None and facts.type in _TEXTS:
        return text
    value = _typed(text)
    if not isinstance(value, str):
        return value if rendered(value) == text else text
    if re.fullmatch(r"-?[0-9]+\.[0-9]+", text) and rendered(float(text)) == text:
        return float(text)
    return text
