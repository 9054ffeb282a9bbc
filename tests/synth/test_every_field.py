"""Every field of the model config does something."""

import copy
import functools
import json
import tempfile
from collections.abc import Collection, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
import yaml

from slipway.config.environments import Environment
from slipway.config.load import LoadedConfig, config_for, load_config, read_config
from slipway.config.schema import ModelConfig
from slipway.errors import Problem, UserError
from slipway.facts.resource_types import provider_schemas
from slipway.planning.artifacts import parts
from slipway.planning.compiling import CompilePlan
from slipway.planning.consequences import Consequence, consequences
from slipway.planning.families import deployment_of
from slipway.planning.lock import Lock, LockedPart
from slipway.planning.plan import DeploymentPlan
from slipway.planning.plan_json import plan_as_json
from slipway.planning.resolve import resolve
from slipway.publishing.compiled import compile_recipe
from slipway.publishing.families import PACKAGING
from slipway.stacks.artifacts_stack import ArtifactsStack
from slipway.stacks.assembly import plan_stack
from tests.support.golden_cases import own_plans
from tests.support.projects import DIGEST, IMAGE_DIGESTS, lock_for
from tests.synth.assemblies import new_app, target_of
from tests.synth.field_bases import content_of, field_paths, put
from tests.synth.field_effects import CHANGES, Change

ENDPOINT, CONFIG, COMPONENT = (
    f"AWS::SageMaker::{noun}" for noun in ("Endpoint", "EndpointConfig", "InferenceComponent")
)
_LOADED: dict[int, LoadedConfig] = {}
_DIGESTS = IMAGE_DIGESTS | {"neuron": "0011223344556677"}


def test_every_field_has_a_row():
    assert sorted(CHANGES) == sorted(field_paths())


def _rows(*effects: str) -> list[str]:
    return [path for path, change in CHANGES.items() if change.effect in effects]


def _loaded(environment: Environment, content: Mapping[str, Any]) -> ModelConfig:
    """Loads a file with that content, as an environment sees it."""
    text = yaml.dump(dict(content), Dumper=yaml.CSafeDumper)
    if (base := content.get("adapter_of")) is not None:
        # The file was a model's, which is now the base.
        whole = {**content, "name": base}
        del whole["adapter_of"]
        _loaded(environment, whole)
        path = Path(_directory().name, f"{content['name']}.yaml")
        sample = {"sample": content["artifacts"].get("sample")}
        own = {"name": path.stem, "adapter_of": base, "artifacts": sample}
        path.write_text(yaml.dump(own), encoding="utf-8")
        base = load_config(path.with_stem(base), path.parent, environment.name, [environment.name])
        loaded = config_for(environment.name, read_config(path, path.parent), [], base=base)
        _LOADED[id(loaded.config)] = loaded
        return loaded.config
    return _loaded_text(environment.name, content["name"], text)


@functools.cache
def _loaded_text(environment: str, name: str, text: str) -> ModelConfig:
    path = Path(_directory().name, f"{name}.yaml")
    path.write_text(text, encoding="utf-8")
    loaded = load_config(path, path.parent, environment, [environment])
    _LOADED[id(loaded.config)] = loaded  # the cache keeps the config, and so its id
    return loaded.config


@functools.cache
def _directory() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory()


def _before(change: Change) -> tuple[Environment, ModelConfig]:
    environment, content = content_of(change.base)
    for path, value in change.over.items():
        put(content, path, value)
    return environment, _loaded(environment, content)


def _after(field_path: str, change: Change) -> tuple[Environment, ModelConfig]:
    environment, content = content_of(change.becomes or change.base)
    if change.becomes is None:
        for path, value in {**change.over, field_path: change.value, **change.along}.items():
            put(content, path, value)
    return environment, _loaded(environment, content)


def _plan(environment: Environment, config: ModelConfig) -> DeploymentPlan:
    owns = _owns(environment, config)
    return resolve(deployment_of(config, environment), lock_for(config), _DIGESTS, owns=owns)


def _owns(environment: Environment, config: ModelConfig, **options: Any) -> Mapping[str, Any]:
    return own_plans(_LOADED[id(config)], environment, **options)


def _plans(field_path: str) -> tuple[DeploymentPlan, DeploymentPlan]:
    change = CHANGES[field_path]
    return _plan(*_before(change)), _plan(*_after(field_path, change))


def _requested(environment: Environment, config: ModelConfig) -> Any:
    return deployment_of(config, environment).compile_plan(_plan(environment, config).image)


# A base or a golden case of each family, and of each way that it has to make an artifact.
_MADE = (
    "tensorrt", "released", "compiled", "lmi", "lmi-environment", "lmi-partition", "triton",
    "triton-compiled", "own-repository", "neuron", "pipelined", "custom", "custom-weights",
)  # fmt: skip


def _published(environment: Environment, config: ModelConfig) -> Any:
    """Returns the source files, the compile job and the package of a publish, as data."""
    deployment = deployment_of(config, environment)
    directory, weights = deployment.published_directory, config.artifacts.weights
    if not deployment.deploys_release or weights is None:
        assert directory is not None
        return directory.path, directory.target
    part = LockedPart(digest=DIGEST, size_bytes=1, file_count=1, source="a", target="any")
    job = None
    if deployment.is_compiled:
        owns = _owns(environment, config, allow_unpublished=True)
        image = resolve(deployment, Lock(), _DIGESTS, owns=owns, allow_unpublished=True).image
        plan = deployment.compile_plan(image)
        assert isinstance(plan, CompilePlan)
        job = compile_recipe(plan, part).key, plan.target
    packaging = PACKAGING[deployment.container]
    package = packaging.package(deployment, {}, DIGEST)
    return (
        weights.model_dump(),
        job,
        (package.digest, packaging.directory(deployment)) if package else None,
    )


def _is_stale(lock: Lock, environment: Environment, config: ModelConfig) -> bool:
    found = parts(deployment_of(config, environment), lock, allow_unpublished=False)
    return isinstance(found, Problem)


def _valid(environment: Environment, content: Mapping[str, Any]) -> ModelConfig | None:
    """Returns a config that every rule accepts, or None."""
    try:
        config = _loaded(environment, content)
        deployment = deployment_of(config, environment)
        owns = _owns(environment, config, allow_unpublished=True)
        resolve(deployment, Lock(), _DIGESTS, owns=owns, allow_unpublished=True)
    except UserError:
        return None
    return config


def _fault(
    lock: Lock, before: tuple[Environment, ModelConfig], after: tuple[Environment, ModelConfig]
) -> str | None:
    """Returns what is wrong with a lock after a change; None if it is stale for a reason."""
    is_other = _published(*before) != _published(*after)
    if is_other == _is_stale(lock, *after):
        return None
    return "other bytes, and a valid lock" if is_other else "the same bytes, and a stale lock"


@pytest.mark.parametrize("base", _MADE)
def test_a_lock_is_stale_exactly_if_publishing_makes_something_else(base: str):
    """Every field that the base's family has is changed."""
    environment, content = content_of(base)
    before = _valid(environment, content)
    assert before is not None
    lock = lock_for(before, sets=[environment.artifacts])
    assert not _is_stale(lock, environment, before)
    tag, wrong = f"[{before.serving.container}]", {}
    for path, change in CHANGES.items():
        if change.becomes or (path.startswith("serving[") and tag not in path):
            continue
        changed = copy.deepcopy(content)
        try:
            for each, value in {**change.over, path: change.value, **change.along}.items():
                put(changed, each, value)
        except (AttributeError, TypeError):
            continue  # the base has a value where the path has a section
        after = _valid(environment, changed)
        if after is not None:
            wrong[path] = _fault(lock, (environment, before), (environment, after))
    assert {path: fault for path, fault in wrong.items() if fault} == {}


@pytest.mark.parametrize("field_path", CHANGES)
def test_a_lock_follows_the_bytes_where_the_field_has_its_effect(field_path: str):
    change = CHANGES[field_path]
    before, after = _before(change), _after(field_path, change)
    lock = lock_for(before[1], sets=[before[0].artifacts])
    assert _fault(lock, before, after) is None
    if change.effect == "lock":
        assert _published(*before) != _published(*after)


@pytest.mark.parametrize("field_path", _rows("request"))
def test_the_training_job_is_told(field_path: str):
    change = CHANGES[field_path]
    assert _requested(*_before(change)) != _requested(*_after(field_path, change))


@pytest.mark.parametrize("field_path", _rows("artifacts"))
def test_the_artifacts_own_stack_has_it(field_path: str, tmp_path: Path):
    change = CHANGES[field_path]
    app = new_app(tmp_path)
    texts = []
    for construct_id, (environment, config) in (
        ("before", _before(change)),
        ("after", _after(field_path, change)),
    ):
        _plan(environment, config)  # no rule refuses it
        ArtifactsStack(
            app, construct_id, config=config, environment=environment, env=target_of(environment)
        )
    directory = Path(app.synth().directory)
    for construct_id in ("before", "after"):
        text = (directory / f"{construct_id}.template.json").read_text("utf-8")
        texts.append(text.replace(construct_id, "STACK"))
    assert texts[0] != texts[1]


@pytest.mark.parametrize("field_path", _rows("plan"))
def test_the_plan_tells_its_reviewer(field_path: str):
    before, after = (
        ([each.memory for each in plan.every_served], asdict(plan.cost), plan.warnings)
        for plan in _plans(field_path)
    )
    assert before != after


@pytest.mark.parametrize("field_path", _rows("refused"))
def test_a_value_that_does_not_suit_the_rest_is_refused(field_path: str):
    change = CHANGES[field_path]
    assert _plan(*_before(change))
    with pytest.raises(UserError) as caught:
        _plan(*_after(field_path, change))
    [problem] = caught.value.problems
    assert field_path.rpartition(".")[2] in f"{problem.field} {problem.remedy}"


@dataclass(frozen=True)
class Rendered:
    """A plan's stack: its template, its name, and what only the CDK CLI's manifest has."""

    text: str
    stack_name: str

    @property
    def resources(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.text)["Resources"]
        return found


@pytest.fixture(scope="module")
def rendered(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Rendered]:
    """Renders the plans before and after each change, each plan once."""
    app = new_app(tmp_path_factory.mktemp("cdk.out"), validates=True)
    ids: dict[str, str] = {}
    for field_path, change in CHANGES.items():
        for plan in () if change.effect == "refused" else _plans(field_path):
            if _key(plan) not in ids:
                ids[_key(plan)] = construct_id = f"stack-{len(ids)}"
                _add_stack(app, construct_id, plan)
    # The same plan once more: what differs by the stack's id alone would not prove anything.
    first = _plan(*_before(CHANGES["description"]))
    _add_stack(app, "again", first)
    assembly = app.synth()

    def of(construct_id: str) -> Rendered:
        path = Path(assembly.directory, f"{construct_id}.template.json")
        content = json.loads(path.read_text("utf-8").replace(construct_id, "STACK"))
        artifact = assembly.get_stack_artifact(construct_id)
        # The CDK CLI protects the stack: its template does not tell.
        content["TerminationProtection"] = artifact.termination_protection
        return Rendered(json.dumps(content), artifact.stack_name)

    found = {key: of(construct_id) for key, construct_id in ids.items()}
    assert of("again") == found[_key(first)]
    return found


def _add_stack(app: cdk.App, construct_id: str, plan: DeploymentPlan) -> None:
    plan_stack(app, construct_id, plan=plan, env=target_of(plan.environment))


@pytest.mark.size("all")
def test_the_template_has_every_change_of_a_plan(rendered: Mapping[str, Rendered]):
    unseen = [
        field_path
        for field_path in _rows("template")
        if len({rendered[_key(plan)] for plan in _plans(field_path)}) == 1
    ]
    assert unseen == []


@pytest.mark.size("all")
def test_an_endpoint_that_changes_has_another_configuration(rendered: Mapping[str, Rendered]):
    """UpdateEndpoint refuses the configuration that the endpoint serves already."""

    def parts(plan: DeploymentPlan) -> list[str]:
        """Returns what makes CloudFormation call UpdateEndpoint, and the configuration's name."""
        found = {"Endpoint": "", "EndpointConfig": ""}
        for name, resource in rendered[_key(plan)].resources.items():
            kind = resource["Type"].removeprefix("AWS::SageMaker::")
            if kind in found:
                content = {**resource["Properties"], "Tags": None}
                of_config = name if kind == "EndpointConfig" else ""
                found[kind] = of_config + json.dumps(content, sort_keys=True)
        return list(found.values())

    refused, changed = [], set()
    for field_path in _rows("template"):
        (old, old_config), (new, new_config) = map(parts, _plans(field_path))
        if old != new:
            changed.add(field_path.partition(".")[0])
            # Another name replaces the endpoint, which is created instead.
            if old_config == new_config and field_path != "name":
                refused.append(field_path)
    assert refused == []
    assert changed >= {"endpoint", "rollout"}


@pytest.mark.size("all")
def test_the_consequence_of_every_change_is_what_its_template_does(
    rendered: Mapping[str, Rendered],
):
    said, done = {}, {}
    for field_path in (path for path, each in CHANGES.items() if each.effect != "refused"):
        before, after = _plans(field_path)
        said[field_path] = consequences(before, after).verdict
        done[field_path] = consequence_of(rendered[_key(before)], rendered[_key(after)])
    assert {path: (said[path], done[path]) for path in said if said[path] != done[path]} == {}
    assert set(done.values()) == {None, *Consequence} - {Consequence.GAP}


def consequence_of(before: Rendered, after: Rendered) -> Consequence | None:
    """Returns what CloudFormation and SageMaker do, by the properties that AWS replaces."""
    if before == after:
        return None
    if before.stack_name != after.stack_name:
        return Consequence.DESTROY
    changed = Changed(before.resources, after.resources)
    if changed.mode() or changed.any(COMPONENT, ("EndpointName", "VariantName")):
        return Consequence.REFUSED
    if changed.is_replaced(ENDPOINT) or changed.is_replaced("AWS::Logs::LogGroup"):
        return Consequence.GAP
    if changed.any(COMPONENT, ("Specification",)):
        return Consequence.NEW_FLEET
    if changed.is_replaced("AWS::SageMaker::EndpointConfig", "AWS::SageMaker::Model"):
        return Consequence.NEW_FLEET
    return Consequence.IN_PLACE


@dataclass(frozen=True)
class Changed:
    before: Mapping[str, Any]
    after: Mapping[str, Any]

    def any(self, kind: str, names: Collection[str]) -> bool:
        return any(
            old.get("Properties", {}).get(name) != new.get("Properties", {}).get(name)
            for old, new in self._both(kind)
            for name in names
        )

    def is_replaced(self, *kinds: str) -> bool:
        """Returns whether a resource of these types gets another id or a create-only value."""
        return any(
            self._ids(self.before, kind) != self._ids(self.after, kind)
            or self.any(kind, provider_schemas()[kind]["create_only"])
            for kind in kinds
        )

    def mode(self) -> bool:
        """Returns whether an endpoint gets or loses a queue, or inference components."""
        modes = [
            [
                ("AsyncInferenceConfig" in each, "ModelName" in each["ProductionVariants"][0])
                for each in (of[name]["Properties"] for name in self._ids(of, CONFIG))
            ]
            for of in (self.before, self.after)
        ]
        return modes[0] != modes[1]

    def _both(self, kind: str) -> Iterator[tuple[Any, Any]]:
        for name in self._ids(self.before, kind) & self._ids(self.after, kind):
            yield self.before[name], self.after[name]

    @staticmethod
    def _ids(resources: Mapping[str, Any], kind: str) -> set[str]:
        return {name for name, each in resources.items() if each["Type"] == kind}


def _key(plan: DeploymentPlan) -> str:
    return json.dumps(plan_as_json(plan), sort_keys=True)
