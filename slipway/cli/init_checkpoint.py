"""What `slipway init` reads in a checkpoint, and checks in answers while they are typed."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import typer
from pydantic import ValidationError

from slipway.cli.output import wrong_options
from slipway.codes.code import Code
from slipway.config.checkpoint import CheckpointFacts
from slipway.config.load import is_secondary_error
from slipway.config.messages import describe
from slipway.config.schema import ModelConfig
from slipway.config.starter import first_content, parse_weights
from slipway.config.starters.starter import Answers
from slipway.errors import FieldPath, Kind, Problem, UserError
from slipway.facts.instances import instance_types
from slipway.importing.checkpoints import folder_place, named_hub_place
from slipway.importing.instances import REASON, cheapest_instance, reference
from slipway.importing.lmi.offers import offered
from slipway.importing.lmi.settings import VLLM_IMAGE, framework_for, serving_section
from slipway.importing.weights import WeightsPlace, is_commit

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from slipway.config.environments import Environment

_OWN = ("framework", "task", "repository", "image_uri")
OF_A_CHECKPOINT = "lmi"
"""The container whose settings follow from a checkpoint."""


def read_checkpoint_of(given: Mapping[str, Any], hub: str | None, root: Path) -> WeightsPlace:
    """Returns the place of the weights, with what the files say that can be read from here."""
    weights = given["weights"]
    if hub is not None and weights is not None:
        raise wrong_options("`--hub` and `--weights` both name weights", "Give one of them.")
    if hub is not None:
        return named_hub_place(hub)
    if weights is None:
        return WeightsPlace("")
    section = parse_weights(weights)
    is_told = given["family"] is not None and given["parameters"] is not None
    shown = section.get("path")
    if section["source"] == "hub" and not is_told:
        return named_hub_place(weights)
    if shown is not None and (root / shown).is_dir():
        return replace(folder_place(root / shown, shown), section=section)
    if shown is None or is_told:
        return WeightsPlace(weights, section)
    raise UserError.of(
        Code.NO_FILES,
        f"`--weights {shown}` is not a directory of this project",
        f"Copy the checkpoint to {root / shown}, or link it there and set SLIPWAY_ALLOW_OUTSIDE to "
        "its folder, or give --family and --parameters.",
    )


@dataclass(frozen=True)
class FirstConfig:
    """Makes the answers for a first config.

    `proposed` is the instance type that the command found by itself; None if the user names one.
    """

    name: str
    container: str
    place: WeightsPlace
    proposed: str | None = None

    def proposing(
        self, given: Mapping[str, Any], environments: Sequence[Environment]
    ) -> FirstConfig:
        """Returns the same with the cheapest type that fits the checkpoint.

        Nothing is proposed if the user names a type, or the files do not tell enough.
        """
        facts = self.place.facts
        is_for_gpus = self.container == OF_A_CHECKPOINT and given["framework"] in (None, VLLM_IMAGE)
        is_told = given["family"] is not None and facts.parameters is not None
        if given["instance"] is not None or not is_told or not is_for_gpus:
            return self
        trial = {**given, "latency_milliseconds": given["latency_milliseconds"] or 1}

        def content_on(name: str) -> Mapping[str, Any]:
            return first_content(self.answers({**trial, "instance": name}))

        found = cheapest_instance(facts, content_on, reference(environments))
        return replace(self, proposed=found)

    def answers(self, given: Mapping[str, Any]) -> Answers:
        facts, reasons = self.place.facts, dict[tuple[str, ...], str]()
        # The shape belongs to the checkpoint's own family.
        if facts.family is not None and given["family"] not in (facts.family, "other"):
            facts = CheckpointFacts()
        facts = replace(facts, family=given["family"])
        if self._is_branch:
            commit = f"Here: the present commit of `{self.place.branch}`."
            reasons["artifacts", "weights", "revision"] = commit
        if self.proposed is not None:
            reasons["endpoint", "instances"] = f"Here: {REASON}"
        answers = Answers(
            name=self.name,
            container=self.container,
            shape=facts.shape,
            own={name: given[name] for name in _OWN},
            reasons=reasons,
            **{name: value for name, value in given.items() if name not in _OWN},
        )
        return self._for_lmi(answers, facts) if self.container == OF_A_CHECKPOINT else answers

    @property
    def told(self) -> Iterator[str]:
        if self._is_branch:
            commit = (self.place.section or {})["revision"]
            yield f"{self.place.repository}@{self.place.branch} is commit {commit} now."
        if self.proposed is not None:
            yield f"{self.proposed} is {REASON} `--instance` names another one."

    @property
    def _is_branch(self) -> bool:
        return self.place.repository is not None and not is_commit(self.place.branch)

    def _for_lmi(self, answers: Answers, facts: CheckpointFacts) -> Answers:
        instance = instance_types().get(answers.instance)
        accelerator = instance.accelerator if instance else None
        framework = answers.own["framework"] or framework_for(accelerator)
        serving, reasons = serving_section(facts, accelerator, framework)
        has_options, offers = "options" in serving, list[str]()
        if framework == VLLM_IMAGE:
            offers = offered(facts, serving["version"], has_options=has_options)
        return replace(
            answers,
            serving=serving,
            reasons={**answers.reasons, **reasons},
            offers=offers,
            size_gb=self.place.size_gb,
        )


_FIELDS: Final[Mapping[str, FieldPath]] = {
    "family": ("model", "family"),
    "parameters": ("model", "parameters"),
    "instance": ("endpoint", "instances"),
    "sample": ("artifacts", "sample", "path"),
    "weights": ("artifacts", "weights"),
    "latency_milliseconds": ("alarms", "model_latency_p99_milliseconds"),
    "task": ("serving", "task"),
    "repository": ("serving", "repository"),
    "image_uri": ("serving", "image_uri"),
}
_NUMBERS: Final = ("parameters", "latency_milliseconds")


def reader_of(name: str, container: str, root: Path) -> Callable[[str], Any]:
    """Returns a function that reads one answer; it raises BadParameter for a wrong answer.

    A prompt of typer shows the error and asks again.
    """

    def read(text: str) -> Any:
        try:
            value = _value(name, text)
            problems = list(_problems(name, value, container, root))
        except UserError as error:
            problems = list(error.problems)
        if problems:
            raise typer.BadParameter(
                "\n".join(f"{each.message}. {each.remedy}".strip() for each in problems)
            )
        return value

    return read


def _value(name: str, text: str) -> Any:
    if name not in _NUMBERS:
        return text
    try:
        # As a config has it: `124439808` or `7.6e9`.
        number = float(text)
    except ValueError:
        number = math.nan
    if number.is_integer():
        return int(number)
    raise UserError.of(
        Code.WRONG_TYPE, f"{text!r} is not a whole number", "Write it as `7600000000` or `7.6e9`."
    )


def _problems(name: str, value: Any, container: str, root: Path) -> Iterator[Problem]:
    field = _FIELDS[name]
    found = [
        problem
        for problem in _validated(_content(field, _written(name, value), container))
        if problem.field[: len(field)] == field
    ]
    yield from found
    if found or name not in ("sample", "weights"):
        return
    path = parse_weights(value).get("path") if name == "weights" else value
    if path is not None and not (root / path).is_dir():
        yield Problem(
            Code.NO_FILES,
            Kind.VALUE,
            f"{path} is not a directory of this project",
            f"Copy it to {root / path}, or link it there and set SLIPWAY_ALLOW_OUTSIDE to its "
            "folder, or name another one.",
        )


def _written(name: str, value: Any) -> Any:
    if name == "instance":
        return [value]
    return parse_weights(value) if name == "weights" else value


def _content(field: FieldPath, value: Any, container: str) -> dict[str, Any]:
    content: Any = value
    for key in reversed(field):
        content = {key: content}
    if field[0] == "serving":
        content["serving"]["container"] = container
    return dict(content)


def _validated(content: Mapping[str, Any]) -> Iterator[Problem]:
    """Yields every problem of a config that has one answer; all other fields are missing."""
    try:
        ModelConfig.model_validate(content)
    except ValidationError as error:
        for detail in error.errors(include_url=False):
            if not is_secondary_error(detail):
                yield describe(detail, ModelConfig, {})
