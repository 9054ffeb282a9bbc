"""Rules about Slipway's LMI image (`image: built`), which contains a known handler.

A user's model.py may read any option. The options of Slipway's handler are known, so no setting of
the config is silently ignored.
"""

from collections.abc import Iterator

from slipway.codes.code import Code
from slipway.config.sections.serving.lmi import OptionValue
from slipway.errors import Problem, did_you_mean
from slipway.planning.deployment import problem
from slipway.planning.families.lmi.deployment import Lmi
from slipway.planning.families.lmi.handlers import OUR_HANDLERS
from slipway.planning.families.lmi.setup import OFF, rendered

_PATH_VARIABLE = "PYTHONPATH"
# Options that the config has fields for.
_SAID_BY_FIELDS = frozenset(
    {"dtype", "pipeline_parallel_degree", "tensor_parallel_degree", "trust_remote_code"}
)
# Options that Slipway's handlers read, with their bounds.
_WHOLE_NUMBERS = frozenset({"default_new_tokens", "max_inputs", "max_new_tokens", "max_tokens"})
_MOST = 1_000_000
_DEFAULT_MAX_NEW_TOKENS = 256


def image_has_our_handler(lmi: Lmi) -> Iterator[Problem]:
    """Refuses frameworks and versions that Slipway has no handler for.

    Its handlers are for two engines, which AWS's present images no longer have.
    """
    setup = lmi.setup
    if setup.serving.image == "managed" or setup.ours is not None:
        return
    own = OUR_HANDLERS.get(setup.version.framework)
    titles = " and ".join(handler.title for handler in OUR_HANDLERS.values())
    yield problem(
        Code.LMI_BUILT_IMAGE,
        f"Slipway has no handler for {setup.image}: `image: built` is for {titles}",
        "Use a later version, or `image: managed`."
        if own is not None
        else f"Use `image: managed`, or the framework {' or '.join(OUR_HANDLERS)}.",
        ("serving", "image"),
    )


def image_brings_the_handler(lmi: Lmi) -> Iterator[Problem]:
    """The package names the handler in the image, and the server looks for no other."""
    setup = lmi.setup
    if setup.ours is None:
        return
    for name in ("entry_point", "script"):
        if getattr(setup.serving, name) is not None:
            message = f"the image has its handler inside, and `{name}` would not be read"
            remedy = f"Remove `{name}`, or use `image: managed`."
            yield problem(Code.LMI_BUILT_IMAGE, message, remedy, ("serving", name))
    if _PATH_VARIABLE in setup.serving.environment:
        yield problem(
            Code.LMI_BUILT_IMAGE,
            f"`{_PATH_VARIABLE}` is how the server finds the handler in the image",
            "Remove it, or use `image: managed` with a `script` beside what it is to import.",
            ("serving", "environment", _PATH_VARIABLE),
        )


def our_handler_reads_options(lmi: Lmi) -> Iterator[Problem]:
    """A key that it does not read would be passed on, and nothing would come of it."""
    setup = lmi.setup
    if setup.ours is None:
        return
    known = set(setup.every_option) | setup.ours.options
    for key in setup.serving.options:
        if key in known or key in setup.version.server_keys:
            continue
        hint = did_you_mean(key, sorted(known))
        message = f"{setup.reader} reads no option '{key}'"
        remedy = f"{hint}It reads {', '.join(sorted(setup.ours.options - _SAID_BY_FIELDS))}."
        yield problem(Code.LMI_OPTION_UNKNOWN, message, remedy, ("serving", "options", key))


def our_handler_follows_fields(lmi: Lmi) -> Iterator[Problem]:
    """Refuses settings that would end the handler's start, after the weights were downloaded."""
    setup = lmi.setup
    if setup.ours is None:
        return
    serving, ours = setup.serving, setup.ours
    if serving.dtype not in ours.dtypes:
        message = f"{setup.reader} does not load weights in {serving.dtype}"
        remedy = f"Use one of {', '.join(ours.dtypes)}."
        yield problem(Code.LMI_DTYPE, message, remedy, ("serving", "dtype"))
    if serving.rolling_batch not in (None, OFF):
        yield problem(
            Code.LMI_ROLLING_BATCH,
            f"{setup.reader} has no rolling batch",
            "Remove `rolling_batch`, or set `max_batch_size`.",
            ("serving", "rolling_batch"),
        )
    if serving.max_rolling_batch_size is not None:
        yield problem(
            Code.LMI_SETTING_UNREAD,
            "there is no rolling batch for `max_rolling_batch_size` to limit",
            "Remove it, or set `max_batch_size`.",
            ("serving", "max_rolling_batch_size"),
        )
    if serving.pipeline_parallel_degree > 1 and "pipeline_parallel_degree" not in ours.options:
        yield problem(
            Code.LMI_PIPELINE_PARALLELISM,
            f"{setup.reader} has no pipeline parallelism: it would ignore the degree "
            f"{serving.pipeline_parallel_degree}",
            "Remove `pipeline_parallel_degree`, or raise `tensor_parallel_degree`.",
            ("serving", "pipeline_parallel_degree"),
        )


def our_handlers_limits_agree(lmi: Lmi) -> Iterator[Problem]:
    """The handler starts with whole numbers alone, and with a default within its limit."""
    setup = lmi.setup
    if setup.ours is None:
        return
    options = setup.serving.options
    for key in sorted(_WHOLE_NUMBERS & set(options) & setup.ours.options):
        if _whole(options[key]) is None:
            message = f"`{key}` is a whole number from 1 to {_MOST}, not {rendered(options[key])}"
            remedy = f"Set `{key}` to such a number."
            yield problem(Code.LMI_OPTION_VALUE, message, remedy, ("serving", "options", key))
    default = _whole(options.get("default_new_tokens", 1))
    limit = _whole(options.get("max_new_tokens", _DEFAULT_MAX_NEW_TOKENS))
    if default is not None and limit is not None and default > limit:
        yield problem(
            Code.LMI_OPTION_VALUE,
            f"`default_new_tokens` is {default}, and no answer may have more than {limit}",
            "Lower it, or raise `max_new_tokens`.",
            ("serving", "options", "default_new_tokens"),
        )


def _whole(value: OptionValue) -> int | None:
    text = rendered(value).strip()
    if text.isascii() and text.isdecimal() and 1 <= int(text) <= _MOST:
        return int(text)
    return None
