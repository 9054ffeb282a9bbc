"""What planning asks of the container `lookup`: its image, its variables, its rules."""

from collections.abc import Iterator

from slipway.families import (
    Accelerator,
    Deployment,
    Family,
    ImagePlan,
    InstanceFacts,
    Layout,
    PlanWarning,
    Problem,
    refusal,
)
from slipway_lookup.section import REPOSITORY, LookupServing


class Lookup(Deployment):
    """A deployment of a table."""

    needs_accelerator = False
    serves_plain_weights = True

    @property
    def serving(self) -> LookupServing:
        """Returns the config's section."""
        return self.section(LookupServing)

    @property
    def given_image(self) -> ImagePlan:
        """Returns the image in the endpoint's account."""
        environment = self.environment
        return ImagePlan(environment.account, self.region, REPOSITORY, self.serving.version)

    def container_environment(self) -> dict[str, str]:
        """Returns the variables that server.py reads."""
        return {"LOOKUP_WORKERS": str(self.serving.workers)}

    def memory_layout(self, instance: InstanceFacts, accelerator: Accelerator) -> Layout | None:
        """Returns None: the server uses no accelerator."""
        return None

    @property
    def cached_tokens(self) -> int:
        """Returns 0: nothing is kept of a request."""
        return 0


def workers_have_processors(lookup: Lookup) -> Iterator[Problem]:
    """Each worker keeps a vCPU busy."""
    workers = lookup.serving.workers
    for placement in lookup.placements:
        vcpus = placement.instance.vcpus
        if vcpus is not None and workers > vcpus:
            yield refusal(
                f"{workers} workers need as many vCPUs, and {placement.instance.name} has {vcpus}",
                f"Set `workers: {vcpus}`, or choose a larger type.",
                ("serving", "workers"),
            )


def processors_are_idle(lookup: Lookup) -> Iterator[PlanWarning]:
    """Warns of vCPUs without a worker."""
    vcpus = lookup.instance.vcpus
    if vcpus is not None and lookup.serving.workers < vcpus:
        yield PlanWarning(
            "lookup-idle", f"{lookup.serving.workers} of {vcpus} vCPUs have a worker."
        )


FAMILY = Family(Lookup, (workers_have_processors,), (processors_are_idle,))
