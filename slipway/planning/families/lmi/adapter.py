"""An adapter that copies of an LMI model load."""

from typing import Any

from slipway.facts.instances import Accelerator, InstanceFacts
from slipway.planning.families.lmi.deployment import Lmi
from slipway.planning.memory_estimate import Layout


class LmiAdapter(Lmi):
    """The base's deployment without what starts a container: an adapter is one archive."""

    has_code = False
    configured_by_environment = False
    copies_weights = False
    is_compiled = False
    text_protocol = None

    @property
    def settings_in_artifact(self) -> dict[str, Any]:
        return {}

    @property
    def settings_in_older_locks(self) -> dict[str, Any]:
        """Returns nothing: no older lock has an adapter."""
        return {}

    def container_environment(self) -> dict[str, str]:
        return {}

    def serving_properties(self, weights_uri: str | None = None) -> dict[str, str]:
        return {}

    def memory_layout(self, instance: InstanceFacts, accelerator: Accelerator) -> Layout | None:
        return None  # `max_loras` and `max_lora_rank` of the base reserve the memory
