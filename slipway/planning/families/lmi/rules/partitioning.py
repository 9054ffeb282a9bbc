"""Rules about weights that a job partitions, and about Slipway's LMI image (`image: built`).

The image's command would find most problems of partitions on a GPU that is paid for. It may also
succeed and leave parts that no server loads (facts: lmi_partition). A user's model.py may read any
option. The options of Slipway's handler are known, so no setting of the config is ignored.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from slipway.codes.code import Code
from slipway.config.sections.artifacts import Compile
from slipway.config.sections.serving.lmi import OptionValue
from slipway.errors import Problem, did_you_mean
from slipway.facts.images import versions
from slipway.facts.instances import InstanceFacts, instance_types
from slipway.facts.lmi.frameworks import images_with
from slipway.facts.lmi.options import CUSTOM
from slipway.facts.lmi.partition import PartitionMethod, partition_method
from slipway.planning.deployment import problem
from slipway.planning.families.lmi.deployment import Lmi
from slipway.planning.families.lmi.handlers import OUR_HANDLERS
from slipway.planning.families.lmi.partitioning import Partitioning, job_settings
from slipway.planning.families.lmi.setup import OFF, rendered

_FIELD = ("artifacts", "compile")
# Of the parts, or of where they are: Slipway writes them.
_OWN_OPTIONS = ("checkpoint", "parallel_loading", "save_mp_checkpoint_path")


def _no_partition(message: str, remedy: str) -> Problem:
    return problem(Code.LMI_NO_PARTITION, message, remedy, _FIELD)


@dataclass(frozen=True)
class _Asked:
    """A config that asks for a partition that its image can make."""

    compiling: Compile
    host: InstanceFacts
    partitioning: Partitioning

    @property
    def method(self) -> PartitionMethod:
        return self.partitioning.method


def images_handler_partitions(lmi: Lmi) -> Iterator[Problem]:
    """The command calls a function `partition` of the handler, which few handlers have."""
    setup = lmi.setup
    if lmi.config.artifacts.compile is None or setup.handler != CUSTOM:
        return
    other, without = (
        ("`script`", "remove `script`")
        if setup.serving.script is not None
        else ("`image: built`", "use `image: managed`")
    )
    message = f"the image's own handler partitions weights, and {other} replaces that handler"
    remedy = f"Remove `compile`: the weights are split when they are loaded. Or {without}."
    yield _no_partition(message, remedy)


def partition_can_be_used(lmi: Lmi) -> Iterator[Problem]:
    """Refuses images that have the command but write parts that cannot be served."""
    asked = _asked(lmi, refused=True)
    if asked is None or asked.method.refused is None:
        return
    name, image = asked.partitioning.framework.name, asked.partitioning.setup.version.framework
    able = [
        version
        for version in versions(image)
        if images_with(name, version)
        and (method := partition_method(name, version)) is not None
        and method.refused is None
    ]
    other = f" Or use version {able[0]} or a later one." if able else ""
    message = f"{asked.partitioning.name} {asked.method.refused}"
    remedy = f"Remove `compile`: the weights are split when they are loaded.{other}"
    yield _no_partition(message, remedy)


def engine_partitions(lmi: Lmi) -> Iterator[Problem]:
    """The command starts a process for each GPU, or none, by the name of the engine."""
    asked = _asked(lmi)
    if asked is None:
        return
    wanted, has = asked.method.engine, asked.partitioning.setup.engine
    if wanted is not None and has != wanted:
        yield _no_partition(
            f"{asked.partitioning.name} partitions for the engine {wanted}; the engine is {has}",
            f"Remove `compile`, or serve with the engine {wanted}.",
        )


def there_is_something_to_split(lmi: Lmi) -> Iterator[Problem]:
    """Refuses to split weights for one GPU: the parts are the whole, and load no faster."""
    asked = _asked(lmi)
    if asked is None:
        return
    degree = asked.partitioning.setup.serving.tensor_parallel_degree
    if degree < asked.method.least_degree:
        yield _no_partition(
            f"{asked.partitioning.name} splits weights over GPUs, and `tensor_parallel_degree` is "
            f"{degree}",
            "Remove `compile`: there is nothing to split.",
        )


def parts_load_again(lmi: Lmi) -> Iterator[Problem]:
    """Refuses families whose saved parts cannot be loaded into an empty model."""
    asked, family = _asked(lmi), lmi.model_type
    if asked is None or family is None or asked.method.model_types is None:
        return
    if family not in asked.method.model_types:
        yield _no_partition(
            f"{asked.partitioning.name} loads the parts of {', '.join(asked.method.model_types)}; "
            f"the family is {family}",
            "Remove `compile`: the weights are split when they are loaded.",
        )


def options_go_with_parts(lmi: Lmi) -> Iterator[Problem]:
    """An option may contradict what partitioned weights are loaded with."""
    asked = _asked(lmi)
    if asked is None:
        return
    for key in asked.partitioning.setup.serving.options:
        why = asked.method.refused_options.get(key)
        if why is None and key in _OWN_OPTIONS:
            why = "is written by Slipway, with the address of the parts"
        if why is not None:
            message = f"with `compile` the option `{key}` {why}"
            remedy = f"Remove `{key}`, or `compile`."
            yield problem(Code.LMI_PARTITION_OPTION, message, remedy, ("serving", "options", key))


def settings_have_a_line_each(lmi: Lmi) -> Iterator[Problem]:
    """The command reads serving.properties without the escapes that the server knows."""
    asked = _asked(lmi)
    if asked is None or asked.method.engine not in (None, asked.partitioning.setup.engine):
        return
    for key, value in job_settings(asked.partitioning).items():
        if value.splitlines() not in ([], [value]) or value != value.strip():
            yield problem(
                Code.LMI_PARTITION_OPTION,
                f"the command that partitions reads the option `{key.removeprefix('option.')}` as "
                "another value: it has a line break, or white space at an end",
                "Write it on one line, without white space around it.",
                ("serving", "options", key.removeprefix("option.")),
            )


def partitions_on_the_endpoints_gpus(lmi: Lmi) -> Iterator[Problem]:
    """The parts are made, and loaded once, on GPUs like those that will serve them."""
    asked = _asked(lmi)
    if asked is None or not asked.host.accelerator_known:
        return
    setup, host = asked.partitioning.setup, asked.host
    endpoint = lmi.instance
    count = setup.devices(host.accelerator)
    if count is None or count < setup.devices_per_copy:
        has = "has none" if count is None else f"has {count}"
        message = f"one copy takes {setup.devices_per_copy} {setup.device_name}; {host.name} {has}"
        remedy = f"Partition on the endpoint's type, `{endpoint.name}`."
        yield problem(Code.LMI_PARTITION_HOST, message, remedy, (*_FIELD, "instance"))
        return
    wanted, given = endpoint.compute_capability, host.compute_capability
    if wanted is not None and wanted != given:
        yield problem(
            Code.COMPILE_INSTANCE,
            f"{host.name} has {host.accelerator_title}; the endpoint's {endpoint.name} has "
            f"{endpoint.accelerator_title}",
            f"Partition on a type with {wanted}, for example `{endpoint.name}`.",
            (*_FIELD, "instance"),
        )


def types_share_the_parts(lmi: Lmi) -> Iterator[Problem]:
    """Every type of an endpoint loads the same parts."""
    asked = _asked(lmi)
    if asked is None:
        return
    first = lmi.placements[0].instance
    wanted = first.compute_capability
    for placement in lmi.placements[1:]:
        given = placement.instance.compute_capability
        if None not in (wanted, given) and given != wanted:
            yield problem(
                Code.POOL_OF_TARGETS,
                f"{placement.instance.name} has {placement.instance.accelerator_title}, and "
                f"{first.name} has {first.accelerator_title}: the weights are partitioned once, "
                "for one of them",
                f"Use types with {wanted} only, remove `compile`, or give "
                f"{placement.instance.name} weights of its own with `endpoint.model_overrides`.",
                placement.field,
            )


def job_has_the_disk(lmi: Lmi) -> Iterator[Problem]:
    """The job reads the weights from its disk, and writes parts that are about as large."""
    asked, size_gb = _asked(lmi), lmi.config.artifacts.size_gb
    if asked is None or size_gb is None or asked.host.local_nvme_gb is None:
        return
    needed, local = 2 * size_gb, asked.host.local_nvme_gb
    if local and needed > local:
        yield problem(
            Code.LMI_PARTITION_HOST,
            f"weights of {size_gb:g} GB and as much in parts do not fit on the local disk of "
            f"{asked.host.name}, which has {local} GB",
            "Partition on a type with the same GPU and a larger local disk.",
            (*_FIELD, "instance"),
        )
    elif not local and needed > asked.compiling.volume_size_gb:
        yield problem(
            Code.LMI_PARTITION_HOST,
            f"weights of {size_gb:g} GB and as much in parts do not fit on the job's volume of "
            f"{asked.compiling.volume_size_gb} GB",
            f"Set `volume_size_gb: {int(needed * 1.1) + 1}` or more.",
            (*_FIELD, "volume_size_gb"),
        )


def _asked(lmi: Lmi, *, refused: bool = False) -> _Asked | None:
    """Returns what is asked for; None where it is not, or where another rule says it cannot be."""
    compiling = lmi.config.artifacts.compile
    found = None if compiling is None else lmi.partitioning
    if found is None or compiling is None or (found.method.refused is not None and not refused):
        return None
    return _Asked(compiling, instance_types()[compiling.instance], found)


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
