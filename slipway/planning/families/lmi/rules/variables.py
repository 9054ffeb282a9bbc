"""Rules about settings that are variables of the container (`configuration: environment`)."""

from collections.abc import Iterator

from slipway.codes.code import Code
from slipway.errors import Problem
from slipway.facts.lmi.versions import model_of_variables
from slipway.planning.deployment import problem
from slipway.planning.families.lmi.deployment import Lmi
from slipway.planning.families.lmi.setup import rendered, versions_whose
from slipway.planning.families.lmi.variables import (
    MAX_VALUE_LENGTH,
    MAX_VARIABLES,
    SERVER_VARIABLES,
    option_variable,
    variables,
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
    yield problem(
        Code.LMI_VARIABLES_UNREAD,
        f"Slipway cannot pass settings as variables to {setup.image}",
        f"Use `configuration: file`, or {other}.",
        ("serving", "configuration"),
    )


def script_has_a_package(lmi: Lmi) -> Iterator[Problem]:
    """A model.py and a requirements.txt travel in the package, and there is none."""
    setup = lmi.setup
    if setup.serving.configuration == "file":
        return
    for name in ("script", "requirements"):
        if getattr(setup.serving, name) is not None:
            yield problem(
                Code.LMI_NEEDS_FILE,
                f"`{name}` needs a package, and `configuration: environment` makes none",
                f"Use `configuration: file`, or remove `{name}`.",
                ("serving", name),
            )


def weights_bring_no_settings(lmi: Lmi) -> Iterator[Problem]:
    """Refuses partitioned weights, whose serving.properties would override the variables."""
    setup = lmi.setup
    if setup.serving.configuration == "file":
        return
    if lmi.config.artifacts.compile is not None:
        yield problem(
            Code.LMI_NEEDS_FILE,
            "`compile` writes a serving.properties, which takes precedence over variables",
            "Use `configuration: file`, or remove `compile`.",
            ("serving", "configuration"),
        )


def options_have_variables(lmi: Lmi) -> Iterator[Problem]:
    """The server ignores an empty variable, and some names lead to another option."""
    setup = lmi.setup
    if setup.serving.configuration == "file":
        return
    for key, value in setup.serving.options.items():
        text = rendered(value)
        if setup.is_server_key(key) and key not in SERVER_VARIABLES:
            yield problem(
                Code.LMI_NEEDS_FILE,
                f"`{key}` is a key of the server, and no variable of {setup.image} is known for it",
                "Use `configuration: file`, or remove the option.",
                ("serving", "options", key),
            )
        elif option_variable(key) is None:
            yield problem(
                Code.LMI_NEEDS_FILE,
                f"no variable of {setup.image} leads to the option '{key}'",
                "Use `configuration: file`, or remove the option.",
                ("serving", "options", key),
            )
        elif not text:
            yield problem(
                Code.LMI_NEEDS_FILE,
                f"`{key}` is empty, and {setup.image} ignores an empty variable",
                "Use `configuration: file`, or remove the option.",
                ("serving", "options", key),
            )
        elif len(text) > MAX_VALUE_LENGTH:
            yield problem(
                Code.LMI_NEEDS_FILE,
                f"`{key}` has {len(text)} characters, and a variable of a container has "
                f"{MAX_VALUE_LENGTH} at most",
                "Use `configuration: file`.",
                ("serving", "options", key),
            )


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
        yield problem(
            Code.LMI_NEEDS_FILE,
            f"the container would have {count} variables; SageMaker takes {MAX_VARIABLES}",
            "Use `configuration: file`, or remove some.",
            ("serving", "configuration"),
        )
