"""The models of an app, by name."""

from collections.abc import Iterator, Mapping
from functools import cached_property

from aws_cdk import aws_cloudwatch as cloudwatch

from slipway.cdk.invocable import Invocable
from slipway.planning.plan import DeploymentPlan
from slipway.stacks.assembly import ProjectStacks, plan_and_report


class Model(Invocable):
    """A model of the project, for stacks beside its own.

    Nothing but `alarms` refers to the model's stack, so that its order of deployment is free. A
    model that is not published has its names, rights and metrics already. Its alarms can be used
    too, and the CDK CLI then refuses to deploy both stacks, with the report.

    Raises:
        UserError: at the first use, every problem of the config. A model whose config has
            problems has no names.
    """

    def __init__(self, name: str, stacks: ProjectStacks) -> None:
        self._name, self._stacks = name, stacks

    @cached_property
    def _plan(self) -> DeploymentPlan:  # type: ignore[override]  # read once
        stacks = self._stacks
        return plan_and_report(stacks.project.unjudged, self._name, stacks.environment, True)[0]

    def _alarms(self) -> list[cloudwatch.CfnAlarm]:
        return self._stacks.alarms_of(self._name)


class Models(Mapping[str, Model]):
    """Every model of the project, whatever `-c models=` selects."""

    def __init__(self, stacks: ProjectStacks) -> None:
        self._stacks = stacks
        self._models: dict[str, Model] = {}

    def __getitem__(self, name: str) -> Model:
        """Returns a model; raises `UserError` with the nearest name if there is none."""
        if name not in self:
            raise self._stacks.project.unknown(name)
        return self._models.setdefault(name, Model(name, self._stacks))

    def __contains__(self, name: object) -> bool:
        return name in self._stacks.project.files

    def __iter__(self) -> Iterator[str]:
        return iter(self._stacks.project.files)

    def __len__(self) -> int:
        return len(self._stacks.project.files)
