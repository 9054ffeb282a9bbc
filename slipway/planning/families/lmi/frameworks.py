"""The frameworks that partition the model of an LMI config.

Pure: config and facts in, facts out. The rules of this folder say what a framework cannot do.
"""

from slipway.facts.lmi.frameworks import (
    PartitionFramework,
    images_with,
    partition_framework,
    possible_frameworks,
    rolling_batches_of,
)
from slipway.planning.families.lmi.setup import OFF, LmiSetup


def frameworks_of(
    setup: LmiSetup, *, rolling_batch: str | None = None
) -> tuple[PartitionFramework, ...]:
    """Returns what may partition the model; none for a model.py of one's own.

    There are several where the server chooses by the model.

    Args:
        setup: what answers requests.
        rolling_batch: the value to look at in place of the config's.
    """
    if setup.handler is None:
        return ()
    version, batch = setup.version.version, rolling_batch or setup.rolling_batch or OFF
    names = possible_frameworks(setup.version, setup.handler, setup.engine, batch)
    return tuple(partition_framework(name, version) for name in names if images_with(name, version))


def splits_layers(setup: LmiSetup) -> bool:
    """Whether a degree may split the layers themselves, and with them the attention heads."""
    frameworks = frameworks_of(setup)
    return not frameworks or any(each.tensor_parallel.value != "no" for each in frameworks)


def may_roll(setup: LmiSetup) -> bool:
    """Whether requests may join and leave a running batch of the handler's."""
    batches = rolling_batches_of(setup.version, setup.engine, setup.rolling_batch or OFF)
    return any(batch != OFF for batch in batches)
