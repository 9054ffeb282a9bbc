"""Rules about LMI's options and variables: keys and values.

DJL Serving accepts any key, passes over what it does not know, and reads some values otherwise than
they look (facts: lmi). Nothing is said of a handler that uses keys which no list names.
"""

import math
import re
from collections.abc import Callable, Iterator, Mapping

from slipway.codes.code import Code
from slipway.config.sections.serving.lmi import OptionValue
from slipway.errors import Problem, did_you_mean
from slipway.facts.images import versions
from slipway.facts.lmi.options import OptionFacts
from slipway.facts.lmi.versions import lmi_version
from slipway.json_text import parse_json
from slipway.planning.deployment import problem
from slipway.planning.families.lmi.deployment import Lmi
from slipway.planning.families.lmi.properties import FIELDS
from slipway.planning.families.lmi.setup import OFF, LmiSetup, rendered
from slipway.planning.memory import STRETCHES

# There `batch_size` is the shape that is compiled, and none of the server's.
_COMPILES_BATCHES = "transformers_neuronx"
_ON_WHATEVER_THE_VALUE = "any value, false too"
_OPTION_VARIABLE, _SERVER_VARIABLE = "OPTION_", "SERVING_"
_SHORT_LIST = 6
_TRUTHS = ("true", "false")
# Limits of prompt and answer together: of vLLM, lmi-dist and transformers-neuronx.
_SEQUENCE_LIMITS = ("max_model_len", "n_positions")
# Variables that stand for what the file says already, and which it wins over.
_OVERRIDDEN_VARIABLES: Mapping[str, str] = {
    "HF_TRUST_REMOTE_CODE": "serving.trust_remote_code",
    "MODEL_LOADING_TIMEOUT": "serving.model_loading_timeout_seconds",
    "PIPELINE_PARALLEL_DEGREE": "serving.pipeline_parallel_degree",
    "PREDICT_TIMEOUT": "serving.predict_timeout_seconds",
    "SERVING_BATCH_SIZE": "serving.max_batch_size",
    "SERVING_JOB_QUEUE_SIZE": "serving.max_queue_length",
    "SERVING_MAX_BATCH_DELAY": "serving.max_batch_delay_milliseconds",
    "TENSOR_PARALLEL_DEGREE": "serving.tensor_parallel_degree",
}
# Variables that name a model beside the packaged one, or another place to look for it.
_MODEL_VARIABLES = ("HF_MODEL_ID", "SERVING_LOAD_MODELS", "SERVING_MODEL_STORE")
_ENTRY_POINT_VARIABLE = "DJL_ENTRY_POINT"
# Slipway's own where settings are variables; beside a file it means nothing.
_RETRY_VARIABLE = "SERVING_RETRY_THRESHOLD"


def options_have_no_field(lmi: Lmi) -> Iterator[Problem]:
    """Refuses an option for which the config has a field, where the value is checked."""
    setup = lmi.setup
    for key in setup.serving.options:
        field = _field_of(setup, key)
        if field is not None:
            message = f"`{key}` has a field of its own: `{field}`"
            remedy = f"Set `{field}` and remove the option."
            yield problem(Code.LMI_OPTION_HAS_FIELD, message, remedy, ("serving", "options", key))


def options_are_known(lmi: Lmi) -> Iterator[Problem]:
    """The server accepts a misspelt key, and goes on without it."""
    setup = lmi.setup
    if setup.is_open:
        return
    for key in _own_options(setup):
        if key in setup.every_option or key in setup.version.server_keys:
            continue
        variable = f"{_SERVER_VARIABLE}{key.upper()}"
        hint = did_you_mean(key, setup.options)
        if setup.version.server_variables.get(variable):
            hint = f"Set `serving.environment.{variable}` instead of the option. "
        message = f"{setup.reader} reads no option '{key}'"
        remedy = f"{hint}The server would ignore it without a warning."
        yield problem(Code.LMI_OPTION_UNKNOWN, message, remedy, ("serving", "options", key))


def options_are_read(lmi: Lmi) -> Iterator[Problem]:
    """Refuses known keys without an effect: outdated, for another engine or rolling batch."""
    setup = lmi.setup
    for key in _own_options(setup):
        facts = setup.every_option.get(key)
        if facts is None:
            continue
        remedy = "Remove it, or change the setting that it belongs to."
        if facts.status == "ignored":
            advice = f": {facts.note}" if facts.note else ""
            message, remedy = f"{setup.image} ignores `{key}`{advice}", "Remove it."
        elif facts.only_engines and setup.engine not in facts.only_engines:
            engines = " or ".join(facts.only_engines)
            message = f"`{key}` is read with the engine {engines}, not with {setup.engine}"
        elif key not in setup.options:
            rolling = setup.rolling_batch if setup.rolling_batch not in (None, OFF) else None
            state = f"not with {rolling}" if rolling else "and there is none"
            batches = " or ".join(facts.rolling_batches)
            message = f"`{key}` is read with the rolling batch {batches}, {state}"
        else:
            continue
        yield problem(Code.LMI_OPTION_UNREAD, message, remedy, ("serving", "options", key))


def options_are_said_once(lmi: Lmi) -> Iterator[Problem]:
    """Refuses two names of one option: it is not documented which of them the server takes."""
    setup = lmi.setup
    for key in _own_options(setup):
        facts = setup.every_option.get(key)
        if facts is not None and facts.alias_of in setup.serving.options:
            message = f"`{key}` and `{facts.alias_of}` are one option"
            remedy = "Keep one of them."
            yield problem(Code.LMI_OPTION_CONFLICT, message, remedy, ("serving", "options", key))


def option_values_fit(lmi: Lmi) -> Iterator[Problem]:
    """A value of the wrong kind is found out when the model is loaded, or never."""
    setup = lmi.setup
    for key, value in _own_options(setup).items():
        facts = setup.options.get(key)
        if setup.is_server_key(key):
            facts = setup.version.server_keys[key]
        if facts is None:
            continue
        wanted, note = _unmet(facts, value), facts.note or ""
        if wanted is not None:
            shown = f"'{value}'" if isinstance(value, str) else rendered(value)
            remedy = "Write it in quotes." if wanted == "a text" else f"Set `{key}` to {wanted}."
            if len(facts.allowed or ()) > _SHORT_LIST:
                # The message has the list.
                words = facts.allowed if facts.type == "str" else None
                hint = did_you_mean(rendered(value), words or ()).rstrip()
                remedy = hint or f"Set `{key}` to one of these."
            yield problem(
                Code.LMI_OPTION_VALUE,
                f"`{key}` is {wanted}, not {shown}",
                remedy,
                ("serving", "options", key),
            )
        elif rendered(value).lower() == "false" and note.startswith(_ON_WHATEVER_THE_VALUE):
            yield problem(
                Code.LMI_OPTION_VALUE,
                f"any value of `{key}` switches it on in {setup.image}, even false",
                "Remove it: without the option it is off.",
                ("serving", "options", key),
            )


def longest_request_fits(lmi: Lmi) -> Iterator[Problem]:
    """A request beyond the engine's limit is refused, or its answer is cut short."""
    serving = lmi.serving
    prompt, answer = serving.max_input_tokens, serving.max_new_tokens
    if prompt is None:
        return
    longest = prompt + (answer or 0)
    for key, limit in _limits(lmi):
        if 0 < limit < longest:
            yield problem(
                Code.LMI_TOO_MANY_TOKENS,
                f"`{key}` is {limit}, and a request may have {longest} tokens: {prompt} of the "
                f"prompt and {answer or 0} of the answer",
                f"Set `{key}` to {longest} or more, or lower `max_input_tokens` or "
                "`max_new_tokens`.",
                ("serving", "options", key),
            )


def engine_limit_has_positions(lmi: Lmi) -> Iterator[Problem]:
    """VLLM refuses to start with a longer sequence than the network has positions."""
    most = lmi.config.model.positions
    for key, limit in _limits(lmi):
        if most is not None and limit > most and not STRETCHES & lmi.serving.options.keys():
            message = f"`{key}` is {limit}, and the network has {most} positions"
            remedy = f"Set `{key}` to {most} or less, or correct `positions` in `model`."
            yield problem(Code.TOO_MANY_TOKENS, message, remedy, ("serving", "options", key))


def _limits(lmi: Lmi) -> list[tuple[str, int]]:
    """Returns the options that limit a sequence, with their tokens."""
    limits = ((key, _tokens(lmi.serving.options.get(key))) for key in _SEQUENCE_LIMITS)
    return [(key, limit) for key, limit in limits if limit is not None]


def _tokens(value: OptionValue | None) -> int | None:
    """Returns a number of tokens as vLLM reads it; None for anything else."""
    found = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)([kKmM]?)", "" if value is None else str(value))
    if found is None or isinstance(value, bool):
        return None
    return int(float(found[1]) * {"": 1, "k": 1000, "K": 1024, "m": 10**6, "M": 2**20}[found[2]])


def environment_leaves_the_file_alone(lmi: Lmi) -> Iterator[Problem]:
    """Variables can load a second model, or say what serving.properties says already."""
    setup = lmi.setup
    for name in setup.serving.environment:
        found = _conflict(setup, name)
        if found is not None:
            yield problem(Code.LMI_VARIABLE_CONFLICT, *found, ("serving", "environment", name))


def server_variables_are_read(lmi: Lmi) -> Iterator[Problem]:
    """An older server passes over a variable, and a value that it cannot read means false."""
    setup = lmi.setup
    for name, value in setup.serving.environment.items():
        if name not in setup.version.server_variables:
            continue
        facts, field = setup.version.server_variables[name], ("serving", "environment", name)
        if facts is None:
            able = [
                version
                for version in versions(setup.version.framework)
                if lmi_version(setup.version.framework, version).server_variables[name]
            ]
            other = f", or use version {able[0]} or a later one" if able else ""
            message = f"{setup.image} does not read the variable `{name}`"
            remedy = f"Remove it{other}."
            yield problem(Code.LMI_SETTING_UNREAD, message, remedy, field)
        elif (wanted := _unmet(facts, value)) is not None:
            message = f"`{name}` is {wanted}, not '{value}'"
            remedy = f"Set `{name}` to {wanted}."
            yield problem(Code.LMI_OPTION_VALUE, message, remedy, field)


def _conflict(setup: LmiSetup, name: str) -> tuple[str, str] | None:
    """Returns what is wrong with a variable, and what to do."""
    packaged = setup.serving.configuration == "file"
    if name in _MODEL_VARIABLES:
        beside = "the one that is packaged" if packaged else "the weights of `artifacts`"
        message = f"`{name}` names models, beside {beside}"
        return message, "Remove it: the weights are those of `artifacts`."
    if name == _RETRY_VARIABLE and not packaged:
        message = f"`{name}` is set already: without it one slow request would end the model"
        return message, "Remove it."
    if name == _ENTRY_POINT_VARIABLE:
        message = f"`{name}` would replace the handler that the options are checked against"
        return message, "Set `serving.entry_point` and remove the variable."
    if name in _OVERRIDDEN_VARIABLES:
        field = _OVERRIDDEN_VARIABLES[name]
        message = f"`{name}` has a field of its own: `{field}`"
        return message, f"Set `{field}` and remove the variable."
    if not name.startswith(_OPTION_VARIABLE):
        return None
    key = name.removeprefix(_OPTION_VARIABLE).lower()
    fields = {known.lower(): field for known, field in FIELDS.items()}
    place = fields.get(key, f"serving.options.{key}")
    effect = "is an option that nothing checks"
    if not setup.version.reads_option_environment:
        effect = f"is not read by {setup.image}"
    elif packaged:
        effect += ", and serving.properties wins over it"
    message = f"`{name}` {effect}"
    return message, f"Set `{place}` and remove the variable."


def _field_of(setup: LmiSetup, key: str) -> str | None:
    """Returns the field that says what an option says, by any of its names."""
    if key == "batch_size" and setup.handler == _COMPILES_BATCHES:
        return None
    facts = setup.every_option.get(key) or setup.version.server_keys.get(key)
    return FIELDS.get(key) or FIELDS.get((facts.alias_of or "") if facts else "")


def _own_options(setup: LmiSetup) -> dict[str, OptionValue]:
    """Returns the options that the config has no field for."""
    return {
        key: value for key, value in setup.serving.options.items() if _field_of(setup, key) is None
    }


def _unmet(facts: OptionFacts, value: OptionValue) -> str | None:
    """Returns what the option's value has to be, where this one is not."""
    if facts.allowed is not None:
        text = rendered(value)
        # Handlers make small letters of true and false (properties_manager/properties.py).
        fits = text in facts.allowed or (text.lower() in _TRUTHS and text.lower() in facts.allowed)
        return None if fits else f"one of {', '.join(facts.allowed)}"
    if facts.type not in _TYPES:
        return None
    name, fits_type = _TYPES[facts.type]
    if facts.minimum is not None and facts.maximum is not None:
        name += f" from {facts.minimum:g} to {facts.maximum:g}"
    elif facts.minimum is not None:
        name += f" of {facts.minimum:g} or more"
    if facts.type == "int or max":
        name += ", or max"
    fits = fits_type(value) and (facts.type not in _NUMBERS or _in_range(facts, value))
    return None if fits else name


def _in_range(facts: OptionFacts, value: OptionValue) -> bool:
    if value == "max":
        return facts.type == "int or max"
    number = float(value)
    low = -math.inf if facts.minimum is None else facts.minimum
    high = math.inf if facts.maximum is None else facts.maximum
    return low <= number <= high


def _is_whole(value: OptionValue) -> bool:
    if isinstance(value, str):
        return re.fullmatch(r"[+-]?[0-9]+", value) is not None
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: OptionValue) -> bool:
    if isinstance(value, bool):
        return False
    try:
        return math.isfinite(float(value))
    except ValueError:
        return False


def _is_json(value: OptionValue) -> bool:
    try:
        parse_json(rendered(value))
    except ValueError:
        return False
    return True


def _is_text(value: OptionValue) -> bool:
    # Of 1e10 or 0012 YAML makes a number that is written otherwise.
    return isinstance(value, str)


def _is_suffixed(value: OptionValue) -> bool:
    # Decimals go with the suffixes of powers of ten alone.
    pattern = r"[0-9]+|[0-9]+(\.[0-9]+)?[kmgt]|[0-9]+[KMGT]"
    return _is_whole(value) or re.fullmatch(pattern, rendered(value)) is not None


def _each(fits: Callable[[OptionValue], bool]) -> Callable[[OptionValue], bool]:
    return lambda value: all(fits(part.strip()) for part in rendered(value).split(","))


_NUMBERS = ("int", "float", "int or max")
_TYPES: Mapping[str, tuple[str, Callable[[OptionValue], bool]]] = {
    "int": ("a whole number", _is_whole),
    "float": ("a number", _is_number),
    "bool": ("true or false", lambda value: rendered(value).lower() in _TRUTHS),
    "str": ("a text", _is_text),
    "path": ("a text", _is_text),
    "int or max": ("a whole number", lambda value: value == "max" or _is_whole(value)),
    "suffixed int": ("a whole number, such as 4096 or 4k", _is_suffixed),
    "suffixed int or auto": (
        "a whole number, such as 4096 or 4k, or auto",
        lambda value: value == "auto" or _is_suffixed(value),
    ),
    "int list": ("a list of whole numbers, separated by commas", _each(_is_whole)),
    "float list": ("a list of numbers, separated by commas", _each(_is_number)),
    "map": (
        "a list of KEY=VALUE, separated by commas",
        lambda value: all(part.partition("=")[1] for part in rendered(value).split(",")),
    ),
    "json": ("JSON", _is_json),
}
