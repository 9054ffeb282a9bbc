"""Rules about LMI weights that a training job partitions before they are served.

The image's command would find most of these problems on a GPU that is paid for. It may also succeed
and leave parts that no server loads (facts: lmi_partition).
"""

from collections.abc import Iterator
from dataclasses import dataclass

from slipway.codes.code import Code
from slipway.config.sections.artifacts import Compile
from slipway.errors import Problem
from slipway.facts.images import versions
from slipway.facts.instances import InstanceFacts, instance_types
from slipway.facts.lmi.frameworks import images_with
from slipway.facts.lmi.options import CUSTOM
from slipway.facts.lmi.partition import PartitionMethod, partition_method
from slipway.planning.deployment import problem
from slipway.planning.families.lmi.deployment import Lmi
from slipway.planning.families.lmi.partitioning import Partitioning, job_settings

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
