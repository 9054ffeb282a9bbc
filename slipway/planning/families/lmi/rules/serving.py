"""Rules about LMI containers: version, engine, handler, weights, time-outs, settings as variables.

DJL Serving dies of some of these minutes into a deployment and passes over the others in silence
(facts: lmi).
"""

from collections.abc import Iterator

from slipway.codes.code import Code
from slipway.errors import Problem, did_you_mean
from slipway.facts.images import UnknownVersionError
from slipway.facts.lmi.versions import lmi_version, model_of_variables
from slipway.planning.deployment import problem
from slipway.planning.families.lmi.deployment import Lmi
from slipway.planning.families.lmi.properties import (
    MAX_VALUE_LENGTH,
    MAX_VARIABLES,
    SERVER_VARIABLES,
    option_variable,
    variables,
)
from slipway.planning.families.lmi.setup import LmiSetup, ordered, rendered, versions_whose
from slipway.planning.sizes import startup_timeout_seconds

# SageMaker's own limit of a realtime request.
_REALTIME_SECONDS = 60
_OPEN = "Set `network_isolation: false` in `endpoint`."
_OPEN_OR_VARIABLES = (
    "Set `network_isolation: false` in `endpoint`, or `configuration: environment` in `serving`: "
    "SageMaker brings the weights then."
)


def lmi_version_exists(lmi: Lmi) -> Iterator[Problem]:
    """AWS has an image of some versions of DJL Serving, and each framework its own."""
    serving = lmi.serving
    try:
        lmi_version(serving.framework, serving.version)
    except UnknownVersionError as error:
        wanted = ordered(serving.version)
        guess = next((name for name in error.known if ordered(name) >= wanted), error.known[-1])
        message = f"there is no image of {serving.framework} {serving.version}"
        remedy = f"Did you mean `{guess}`? There are {', '.join(error.known)}."
        yield problem(Code.UNKNOWN_IMAGE_VERSION, message, remedy, ("serving", "version"))


def engine_is_accepted(lmi: Lmi) -> Iterator[Problem]:
    """The server dies of an engine that it does not know; case counts."""
    setup = lmi.setup
    known = (*setup.version.engines, *setup.version.embedding_engines)
    if setup.engine not in known:
        same = next((name for name in known if name.lower() == setup.engine.lower()), None)
        hint = did_you_mean(same or setup.engine, known)
        message = f"{setup.image} has no engine '{setup.engine}'"
        remedy = f"{hint}There are {', '.join(known)}; case matters."
        yield problem(Code.LMI_ENGINE, message, remedy, ("serving", "engine"))


def engine_has_handler(lmi: Lmi) -> Iterator[Problem]:
    """The server knows engines whose handlers only another framework's image can run."""
    setup = lmi.setup
    has_one = setup.serving.entry_point is not None or setup.handler is not None
    if not has_one and setup.engine in setup.version.engines:
        message = f"{setup.image} has no handler for the engine {setup.engine}"
        remedy = "Remove `engine`, or choose the framework's image that has it."
        yield problem(Code.LMI_ENGINE, message, remedy, ("serving", "engine"))


def entry_point_is_built_in(lmi: Lmi) -> Iterator[Problem]:
    """A module that the image does not have, or cannot run, is found out when it is loaded."""
    setup = lmi.setup
    if setup.serving.entry_point in (None, *setup.version.entry_points):
        return
    known = tuple(setup.version.entry_points)
    hint = did_you_mean(setup.serving.entry_point, known)
    message = f"{setup.image} has no handler '{setup.serving.entry_point}'"
    remedy = f"{hint}There are {', '.join(known)}; a model.py of your own goes into `script`."
    yield problem(Code.LMI_HANDLER, message, remedy, ("serving", "entry_point"))


def there_is_one_handler(lmi: Lmi) -> Iterator[Problem]:
    """A model.py beside a built-in handler: the server takes the latter and says nothing.

    Later servers run the formatters of the model.py, which they decorate.
    """
    setup = lmi.setup
    given = [name for name in ("entry_point", "script") if getattr(setup.serving, name) is not None]
    if len(given) > 1 and not setup.version.reads_formatters:
        able = versions_whose(setup.version.framework, lambda each: each.reads_formatters)
        other = f" From {able[0]} on a model.py may have formatters for it." if able else ""
        message = "there are two handlers: `entry_point` and `script`"
        remedy = f"Keep one of them.{other}"
        yield problem(Code.LMI_HANDLER, message, remedy, ("serving", "script"))
    elif given and not setup.runs_python:
        message = f"the engine {setup.engine} runs no Python, so `{given[0]}` is not read"
        remedy = f"Remove it, or use the engine {setup.version.engines[-1]}."
        yield problem(Code.LMI_HANDLER, message, remedy, ("serving", given[0]))


def requirements_are_installed(lmi: Lmi) -> Iterator[Problem]:
    """The server installs a requirements.txt before it starts Python, and knows one folder."""
    setup = lmi.setup
    if setup.serving.requirements is None:
        return
    if (script := setup.serving.script) is not None:
        message = "`script` has a requirements.txt of its own, and `requirements` names another"
        remedy = f"Put the packages into {script}/requirements.txt, and remove `requirements`."
    elif not setup.runs_python:
        message = f"the engine {setup.engine} runs no Python, so `requirements` is not read"
        remedy = f"Remove it, or use the engine {setup.version.engines[-1]}."
    else:
        return
    yield problem(Code.LMI_HANDLER, message, remedy, ("serving", "requirements"))


def model_is_a_checkpoint(lmi: Lmi) -> Iterator[Problem]:
    """A release is a compiled model of a container of Slipway, and LMI serves a checkpoint."""
    if lmi.config.artifacts.release is not None:
        yield problem(
            Code.LMI_RELEASE,
            "LMI serves a checkpoint, and `release` is for a model that was compiled for a "
            "container of Slipway",
            "Use `artifacts.weights` with `source: path` and the directory of the checkpoint.",
            ("artifacts", "release"),
        )


def weights_can_be_named(lmi: Lmi) -> Iterator[Problem]:
    """The oldest server reads weights from the Hub or from its package alone."""
    setup = lmi.setup
    if setup.version.weights.s3 or not lmi.copies_released_weights:
        return
    able = versions_whose(setup.version.framework, lambda each: bool(each.weights.s3))
    message = f"{setup.image} does not copy weights from S3"
    remedy = f"Use version {able[0]} or a later one."
    yield problem(Code.LMI_WEIGHTS_FROM_S3, message, remedy, ("serving", "version"))


def _reads_variables(setup: LmiSetup) -> bool:
    """Whether the other form of the settings, which lets SageMaker bring the weights, will do."""
    has_files = setup.serving.script is not None or setup.serving.requirements is not None
    return not has_files and setup.version.makes_model_of_variables


def weights_need_network(lmi: Lmi) -> Iterator[Problem]:
    """SageMaker brings the package alone; the container itself copies the weights from S3."""
    setup = lmi.setup
    if lmi.copies_released_weights and lmi.config.endpoint.network_isolation:
        yield problem(
            Code.LMI_NETWORK_ISOLATION,
            "the container copies the weights from S3 itself, which network isolation forbids",
            _OPEN_OR_VARIABLES if _reads_variables(setup) else _OPEN,
            ("endpoint", "network_isolation"),
        )


def loading_ends_in_time(lmi: Lmi) -> Iterator[Problem]:
    """SageMaker gives up on a container whose /ping is late, whatever the server would wait."""
    loading, startup = lmi.loading_timeout_seconds, startup_timeout_seconds(lmi)
    if lmi.setup.runs_python and loading > startup:
        yield problem(
            Code.LMI_TIMEOUT,
            f"the model may load for {loading} s, and SageMaker ends the start after {startup} s",
            f"Lower `model_loading_timeout_seconds` to {startup} or less, or raise "
            "`endpoint.container_startup_health_check_timeout_seconds`.",
            ("serving", "model_loading_timeout_seconds"),
        )


def predictions_end_in_time(lmi: Lmi) -> Iterator[Problem]:
    """SageMaker has given the request up by then, while the model goes on with it."""
    seconds = lmi.serving.predict_timeout_seconds
    if lmi.config.endpoint.mode == "realtime" and seconds > _REALTIME_SECONDS:
        yield problem(
            Code.LMI_TIMEOUT,
            f"a prediction may take {seconds} s, and SageMaker ends realtime requests after "
            f"{_REALTIME_SECONDS} s",
            f"Lower `predict_timeout_seconds` to {_REALTIME_SECONDS} or less, or use "
            "`mode: async`.",
            ("serving", "predict_timeout_seconds"),
        )


def image_reads_variables(lmi: Lmi) -> Iterator[Problem]:
    """Older servers take the address of the weights for a name on the Hub.

    The server of djl-neuronx does the same, and compiles for a batch size that no variable sets.
    """
    setup = lmi.setup
    if setup.serving.configuration == "file" or setup.version.makes_model_of_variables:
        return
    frameworks, first = model_of_variables()
    if setup.version.framework in frameworks:
        able = versions_whose(setup.version.framework, lambda each: each.makes_model_of_variables)
        other = f"version {able[0]} or a later one"
    else:
        other = f"{' or '.join(frameworks)} from {first} on"
    message = f"Slipway cannot pass settings as variables to {setup.image}"
    remedy = f"Use `configuration: file`, or {other}."
    yield problem(Code.LMI_VARIABLES_UNREAD, message, remedy, ("serving", "configuration"))


def script_has_a_package(lmi: Lmi) -> Iterator[Problem]:
    """A model.py and a requirements.txt travel in the package, and there is none."""
    setup = lmi.setup
    if setup.serving.configuration == "file":
        return
    for name in ("script", "requirements"):
        if getattr(setup.serving, name) is not None:
            message = f"`{name}` needs a package, and `configuration: environment` makes none"
            remedy = f"Use `configuration: file`, or remove `{name}`."
            yield problem(Code.LMI_NEEDS_FILE, message, remedy, ("serving", name))


def weights_bring_no_settings(lmi: Lmi) -> Iterator[Problem]:
    """Refuses partitioned weights, whose serving.properties would override the variables."""
    if lmi.serving.configuration != "file" and lmi.config.artifacts.compile is not None:
        message = "`compile` writes a serving.properties, which takes precedence over variables"
        remedy = "Use `configuration: file`, or remove `compile`."
        yield problem(Code.LMI_NEEDS_FILE, message, remedy, ("serving", "configuration"))


def options_have_variables(lmi: Lmi) -> Iterator[Problem]:
    """The server ignores an empty variable, and some names lead to another option."""
    setup = lmi.setup
    if setup.serving.configuration == "file":
        return
    for key, value in setup.serving.options.items():
        text, remedy = rendered(value), "Use `configuration: file`, or remove the option."
        if setup.is_server_key(key) and key not in SERVER_VARIABLES:
            wrong = (
                f"`{key}` is a key of the server, and no variable of {setup.image} is known for it"
            )
        elif option_variable(key) is None:
            wrong = f"no variable of {setup.image} leads to the option '{key}'"
        elif not text:
            wrong = f"`{key}` is empty, and {setup.image} ignores an empty variable"
        elif len(text) > MAX_VALUE_LENGTH:
            remedy = "Use `configuration: file`."
            wrong = (
                f"`{key}` has {len(text)} characters, and a variable of a container has "
                f"{MAX_VALUE_LENGTH} at most"
            )
        else:
            continue
        yield problem(Code.LMI_NEEDS_FILE, wrong, remedy, ("serving", "options", key))


def variables_are_few(lmi: Lmi) -> Iterator[Problem]:
    """A container has so many and no more."""
    setup = lmi.setup
    if setup.serving.configuration == "file" or not lmi.setup.version.makes_model_of_variables:
        return
    if any(True for _ in options_have_variables(lmi)):
        return  # there are no variables of it
    own = variables(lmi.properties())
    count = len({*own, *setup.serving.environment})
    if count > MAX_VARIABLES:
        message = f"the container would have {count} variables; SageMaker takes {MAX_VARIABLES}"
        remedy = "Use `configuration: file`, or remove some."
        yield problem(Code.LMI_NEEDS_FILE, message, remedy, ("serving", "configuration"))
