"""The entry of a serving family in the registry."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar

from slipway.config.environments import Environment
from slipway.config.sections.base import UnknownValueError
from slipway.errors import Problem
from slipway.planning.deployment import Deployment
from slipway.planning.partial import found_by
from slipway.planning.plan import ImageBase, PlanWarning

DeploymentT = TypeVar("DeploymentT", bound=Deployment)


@dataclass(frozen=True)
class Family(Generic[DeploymentT]):
    """What planning knows of one serving family.

    Args:
        rules: what cannot work together in its section, beside the rules that all families share.
        advice: what a reviewer may want to know.
        image_bases: the images that the family's container is built on, for an environment and the
            images of AWS that configs name; None where Slipway builds none.
        marks_image: text in each config file that names a base which no other config needs; None
            where all bases are built, whatever configs there are.
        compiler_images: account and repository of AWS's images that compile, in a region.
        weights_variable: variable in which earlier versions of Slipway named the weights.
        adapter: the class of the LoRA adapters of its models; None where no container loads any.
        is_known: whether the rest of the rules can be asked; the first one reports why not.
    """

    deployment: type[DeploymentT]
    rules: tuple[Callable[[DeploymentT], Iterator[Problem]], ...] = ()
    advice: tuple[Callable[[DeploymentT], Iterator[PlanWarning]], ...] = ()
    image_bases: Callable[[Environment, Iterable[tuple[str, str]]], Iterator[ImageBase]] | None = (
        None
    )
    marks_image: bytes | None = None
    compiler_images: Callable[[str], Iterable[tuple[str, str]]] = lambda _: ()
    weights_variable: str | None = None
    adapter: type[DeploymentT] | None = None
    is_known: Callable[[DeploymentT], bool] = lambda _: True

    def problems(self, deployment: DeploymentT) -> list[Problem]:
        try:
            rules = self.rules if self.is_known(deployment) else self.rules[:1]
        except UnknownValueError:
            rules = self.rules  # each of them that needs the unknown value finds nothing
        return found_by(rules, deployment)

    def warnings(self, deployment: DeploymentT) -> Iterator[PlanWarning]:
        if self.is_known(deployment):
            for advise in self.advice:
                yield from advise(deployment)
