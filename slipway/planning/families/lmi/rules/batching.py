"""Rules about LMI's precision and batches: what the handler, the image and the engine take.

DJL Serving forms batches itself or leaves it to a rolling batch, which requests join and leave
(facts: lmi).
"""

from collections.abc import Iterator

from slipway.codes.code import Code
from slipway.errors import Problem, did_you_mean
from slipway.facts.images import frameworks, versions
from slipway.facts.lmi.versions import lmi_version
from slipway.planning.deployment import problem
from slipway.planning.families.lmi.deployment import Lmi
from slipway.planning.families.lmi.setup import OFF, LmiSetup


def dtype_is_accepted(lmi: Lmi) -> Iterator[Problem]:
    """Each handler has the precisions that it knows."""
    setup = lmi.setup
    facts = setup.options.get(setup.dtype_key)
    if facts and facts.allowed is not None and setup.serving.dtype not in facts.allowed:
        message = f"{setup.reader} does not load weights in {setup.serving.dtype}"
        remedy = f"Use one of {', '.join(value for value in facts.allowed if value != 'auto')}."
        yield problem(Code.LMI_DTYPE, message, remedy, ("serving", "dtype"))


def remote_code_can_be_trusted(lmi: Lmi) -> Iterator[Problem]:
    """Handlers that do not read the option never run a checkpoint's code."""
    setup = lmi.setup
    is_read = setup.reads("trust_remote_code") or not setup.is_settled
    if setup.serving.trust_remote_code and not is_read:
        message = f"{setup.reader} cannot run a checkpoint's own code"
        remedy = "Remove `trust_remote_code`, or choose a later version."
        yield problem(Code.LMI_SETTING_UNREAD, message, remedy, ("serving", "trust_remote_code"))


def rolling_batch_is_known(lmi: Lmi) -> Iterator[Problem]:
    """A value needs a handler that reads it and a library that the image has."""
    setup = lmi.setup
    batch = setup.serving.rolling_batch
    if setup.handler is None or batch is None:
        return
    facts = setup.every_option.get("rolling_batch")
    if facts is None:
        if not setup.is_open:
            message = f"{setup.reader} has no rolling batch"
            remedy = "Remove `rolling_batch`, or set `max_batch_size`."
            yield problem(Code.LMI_ROLLING_BATCH, message, remedy, ("serving", "rolling_batch"))
        return
    if facts.allowed is None or batch in facts.allowed:
        return
    elsewhere = _frameworks_with_rolling_batch(setup, batch)
    hint = did_you_mean(batch, facts.allowed)
    if elsewhere:
        hint = f"It is in {' and '.join(elsewhere)} of that version. "
    message = f"{setup.reader} has no rolling batch '{batch}'"
    remedy = f"{hint}There are {', '.join(facts.allowed)}."
    yield problem(Code.LMI_ROLLING_BATCH, message, remedy, ("serving", "rolling_batch"))


def rolling_batch_fits_engine(lmi: Lmi) -> Iterator[Problem]:
    """Refuses a rolling batch that does not fit the engine; some need MPI's processes."""
    setup = lmi.setup
    # Slipway's image has no rolling batch on any engine, which another rule reports.
    if setup.serving.rolling_batch is None or setup.ours is not None:
        return
    engines = setup.version.rolling_batch_engines.get(setup.serving.rolling_batch)
    if engines is not None and setup.engine not in engines:
        yield problem(
            Code.LMI_ROLLING_BATCH,
            f"rolling batch {setup.serving.rolling_batch} of {setup.image} does not run on the "
            f"engine {setup.engine}",
            f"Set `engine: {engines[0]}`.",
            ("serving", "engine"),
        )


def batches_are_of_one_kind(lmi: Lmi) -> Iterator[Problem]:
    """The server turns the rolling batch off where it forms batches itself, and says nothing."""
    batch, size = lmi.serving.rolling_batch, lmi.serving.max_batch_size
    if batch not in (None, OFF) and size > 1:
        yield problem(
            Code.LMI_ROLLING_BATCH,
            f"batches of {size} turn the rolling batch {batch} off",
            "Remove `max_batch_size`; `max_rolling_batch_size` is the rolling batch's. Or remove "
            "`rolling_batch`.",
            ("serving", "max_batch_size"),
        )


def rolling_batch_size_is_read(lmi: Lmi) -> Iterator[Problem]:
    """Refuses the size of a rolling batch that is off, because it would have no effect."""
    setup, size = lmi.setup, lmi.serving.max_rolling_batch_size
    if size is not None and setup.is_settled and not setup.rolls:
        yield problem(
            Code.LMI_SETTING_UNREAD,
            "there is no rolling batch for `max_rolling_batch_size` to limit",
            "Set `rolling_batch`, or remove `max_rolling_batch_size`.",
            ("serving", "max_rolling_batch_size"),
        )


def batch_settings_are_read(lmi: Lmi) -> Iterator[Problem]:
    """The oldest servers are told of batches and queues by other means than the file."""
    setup = lmi.setup
    serving = setup.serving
    for field, key in (("max_batch_size", "batch_size"), ("max_queue_length", "job_queue_size")):
        default = type(serving).model_fields[field].default
        if getattr(serving, field) != default and key not in setup.version.server_keys:
            message = f"{setup.image} does not read `{key}` from serving.properties"
            remedy = f"Remove `{field}`, or use a later version."
            yield problem(Code.LMI_SETTING_UNREAD, message, remedy, ("serving", field))
    delay = "max_batch_delay_milliseconds"
    if serving.max_batch_size == 1 and delay in serving.model_fields_set:
        message = "batches of one request have no delay"
        remedy = f"Set `max_batch_size`, or remove `{delay}`."
        yield problem(Code.LMI_SETTING_UNREAD, message, remedy, ("serving", delay))


def _frameworks_with_rolling_batch(setup: LmiSetup, batch: str) -> list[str]:
    """Returns the other images of the version whose same handler has a rolling batch."""
    found = []
    for framework in frameworks():
        if not framework.startswith("djl-") or setup.serving.version not in versions(framework):
            continue
        other = lmi_version(framework, setup.serving.version)
        if setup.handler not in other.handlers:
            continue
        facts = other.options_for(str(setup.handler)).get("rolling_batch")
        if facts is not None and batch in (facts.allowed or ()):
            found.append(framework)
    return found
