"""CloudFormation and the services accept the templates of mutants, and of golden cases.

`tests/unit/config/test_mutants.py` sees to it that every mutant is planned or refused. Here those
that are planned become templates, which cfn-lint and the models of the APIs then look at. They are
drawn in kinds, as many of each: one kind a container family, and one of endpoints that scale to
zero. A run that is not deep draws a quarter of them, and leaves the shipped configs but one to
`test_shipped.py`.
"""

import copy
import itertools
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings

from slipway.errors import UserError
from slipway.planning.plan import DeploymentPlan
from slipway.planning.plan_json import plan_as_json
from slipway.stacks.endpoint_stack import EndpointStack
from tests.support.linting import lint
from tests.support.mutants import Base, Mutant, golden_cases, mutants, plan_of, shipped_configs
from tests.support.slipway_stack import golden_template
from tests.synth.assemblies import new_app, target_of
from tests.synth.requests_of_template import complaints_about, requests_of

GOLDEN = Path(__file__).parents[1] / "golden" / "templates"
# Stacks of buckets and keys, which no stack of an endpoint has.
OF_BUCKETS = {"artifacts-isolated", "artifacts-isolated-lmi", "foundation", "foundation-network"}
# It has what the control lacks: a component, and a schedule. Among the bases of its family it is
# one of many, so that its mutants are a kind of their own.
SLEEPER = "scale-to-zero-schedules"
SLEEPING = "sleeping"
KINDS = ("custom", "lmi", "neuron", "tensorrt", "triton", SLEEPING)
IS_DEEP = settings.get_current_profile_name() == "deep"
MUTANTS_PER_KIND = 8 if IS_DEEP else 2
# About one draw in nine gives a plan that none before it gave.
ROUNDS, DRAWS_PER_ROUND = 20, 100
# Blind changes are refused nearly always.
CHANGES = ("delete", "replace", "to_a_limit", "to_a_limit", "to_a_limit")
CONTROL = "gpt2-autocomplete"


@dataclass(frozen=True)
class Subject:
    path: Path
    config: str

    @property
    def template(self) -> dict[str, Any]:
        content: dict[str, Any] = json.loads(self.path.read_text("utf-8"))
        return content


def kind_of(base: Base) -> str:
    container: str = base.content["serving"]["container"]
    return SLEEPING if base.name == SLEEPER else container


def balanced_bases() -> list[Base]:
    """Returns the bases of each kind, as many of one as of another."""
    kinds: dict[str, list[Base]] = {kind: [] for kind in KINDS}
    for base in (*shipped_configs(), *golden_cases()):
        kinds[kind_of(base)].append(base)
    size = max(map(len, kinds.values()))
    repeated = (itertools.islice(itertools.cycle(bases), size) for bases in kinds.values())
    return list(itertools.chain.from_iterable(repeated))


def accepted_mutants(root: Path) -> Iterator[tuple[Mutant, DeploymentPlan]]:
    """Yields mutants that are planned, each with a plan that no other has; always the same."""
    found: dict[str, dict[str, tuple[Mutant, DeploymentPlan]]] = {kind: {} for kind in KINDS}

    @settings(
        max_examples=DRAWS_PER_ROUND,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=[HealthCheck.too_slow],
    )
    @given(mutant=mutants(balanced_bases(), CHANGES))
    def draw(mutant: Mutant) -> None:
        of_kind = found[kind_of(mutant.base)]
        if len(of_kind) == MUTANTS_PER_KIND:
            return
        try:
            plan = plan_of(mutant.raw, mutant.stem, root, mutant.base.environment)
        except UserError:
            return
        of_kind.setdefault(json.dumps(plan_as_json(plan), sort_keys=True), (mutant, plan))

    for number in range(ROUNDS):
        seed(number)(draw)()
        if all(len(of_kind) == MUTANTS_PER_KIND for of_kind in found.values()):
            break
    for kind in KINDS:
        assert len(found[kind]) == MUTANTS_PER_KIND, kind
        yield from found[kind].values()


@pytest.fixture(scope="module")
def subjects(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Subject]:
    """The templates of shipped configs and of mutants, from one synthesis."""
    root, output = tmp_path_factory.mktemp("project"), tmp_path_factory.mktemp("cdk.out")
    app = new_app(output)
    made: dict[str, Subject] = {}

    def add(name: str, plan: DeploymentPlan, config: bytes) -> None:
        EndpointStack(app, name, plan=plan, env=target_of(plan.environment))
        made[name] = Subject(output / f"{name}.template.json", config.decode())

    for base in shipped_configs():
        if not (IS_DEEP or base.name == CONTROL):
            continue
        add(base.name, plan_of(base.raw, base.name, root, base.environment), base.raw)
    for number, (mutant, plan) in enumerate(accepted_mutants(root)):
        origin = f"# {mutant.base.name} in {mutant.base.environment.name}\n"
        add(f"mutant-{number}-{mutant.base.name}", plan, origin.encode() + mutant.raw)
    app.synth()
    return made


def linted(paths: Sequence[Path]) -> dict[str, list[str]]:
    """Lists cfn-lint's findings by file stem, of the templates that have any."""
    return {
        path.name.partition(".")[0]: [f"{match.rule.id} {match.message}" for match in matches]
        for path, matches in lint(paths).items()
        if matches
    }


@pytest.mark.size("all")
def test_cfn_lint_finds_nothing(subjects: dict[str, Subject]):
    found = linted([subject.path for subject in subjects.values()])
    assert {name: (found[name], subjects[name].config) for name in found} == {}


def test_no_service_would_refuse_a_request(subjects: dict[str, Subject]):
    found = {
        name: (complaints, subject.config)
        for name, subject in subjects.items()
        if (complaints := complaints_about(subject.template))
    }
    assert found == {}


def test_no_service_would_refuse_a_request_of_a_golden_template():
    names = {path.stem for path in GOLDEN.glob("*.json")} - OF_BUCKETS
    found = {
        name: complaints
        for name in names
        if (
            complaints := complaints_about(json.loads((GOLDEN / f"{name}.json").read_text("utf-8")))
        )
    }
    assert found == {}


@pytest.mark.size("deep")
def test_the_draw_holds_every_request(subjects: dict[str, Subject]):
    mutated = [subject for name, subject in subjects.items() if name.startswith("mutant-")]
    assert len(mutated) == len(KINDS) * MUTANTS_PER_KIND
    made = {request.operation for each in mutated for request in requests_of(each.template)}
    assert made == {operation for operation, *_ in WRONG}


# Operation, resource type, path to a property, a value that is wrong, and what is said of it.
WRONG = (
    (
        "CreateModel", "AWS::SageMaker::Model", ("PrimaryContainer", "Environment"), {"1ST": "a"},
        "Value '1ST' at 'primaryContainer.environment' failed",
    ),
    (
        "CreateModel", "AWS::SageMaker::Model", ("PrimaryContainer", "Environment"),
        {f"K{number}": "x" * 1000 for number in range(40)},
        "the variables have 40110 bytes together",
    ),
    (
        "CreateModel", "AWS::SageMaker::Model", ("PrimaryContainer", "Environment"),
        {"A": "é" * 600}, "a variable has 1200 bytes",
    ),
    (
        "CreateEndpointConfig", "AWS::SageMaker::EndpointConfig",
        ("ProductionVariants", 0, "VolumeSizeInGB"), 513, "have value less than or equal to 512",
    ),
    (
        "CreateEndpointConfig", "AWS::SageMaker::EndpointConfig",
        ("ProductionVariants", 0, "InstanceTyp"), "ml.m5.large", 'Unknown parameter',
    ),
    (
        "CreateEndpoint", "AWS::SageMaker::Endpoint", ("EndpointName",), "a_b",
        "Value 'a_b' at",
    ),
    (
        "UpdateEndpoint", "AWS::SageMaker::Endpoint",
        ("ExcludeRetainedVariantProperties", 0, "VariantPropertyType"), "Weight",
        "Value 'Weight' at",
    ),
    (
        "RegisterScalableTarget", "AWS::ApplicationAutoScaling::ScalableTarget",
        ("ScalableDimension",), "sagemaker:variant:Instances", "satisfy enum value set",
    ),
    (
        "PutScalingPolicy", "AWS::ApplicationAutoScaling::ScalingPolicy",
        ("TargetTrackingScalingPolicyConfiguration", "TargetValue"), 1e200,
        "the target value 1e+200 is too small or too large",
    ),
    (
        "PutMetricAlarm", "AWS::CloudWatch::Alarm", ("EvaluationPeriods",), 0,
        "Invalid value for parameter EvaluationPeriods, value: 0, valid min value: 1",
    ),
    (
        "PutMetricAlarm", "AWS::CloudWatch::Alarm", ("ComparisonOperator",), "IsAbove",
        "Value 'IsAbove' at",
    ),
    (
        "CreateRole", "AWS::IAM::Role", ("Tags",),
        [{"Key": "Team", "Value": "a"}, {"Key": "team", "Value": "b"}], "Duplicate tag keys found",
    ),
    (
        "CreateRole", "AWS::IAM::Role", ("Tags", 0, "Value"), "search & rescue",
        "Value 'search & rescue' at",
    ),
    (
        "PutRolePolicy", "AWS::IAM::Role", ("Policies", 0, "PolicyName"), "may serve",
        "Value 'may serve' at",
    ),
    (
        "CreateLogGroup", "AWS::Logs::LogGroup", ("LogGroupName",), "/aws/a log",
        "Value '/aws/a log' at",
    ),
    (
        "PutRetentionPolicy", "AWS::Logs::LogGroup", ("RetentionInDays",), "30",
        "Invalid type for parameter retentionInDays",
    ),
    (
        "CreateInferenceComponent", "AWS::SageMaker::InferenceComponent",
        ("Specification", "ComputeResourceRequirements", "MinMemoryRequiredInMb"), 127,
        "127, valid min value: 128",
    ),
    (
        "UpdateInferenceComponent", "AWS::SageMaker::InferenceComponent", ("DeploymentConfig",),
        {
            "RollingUpdatePolicy": {
                "MaximumBatchSize": {"Type": "PERCENT", "Value": 50}, "WaitIntervalInSeconds": 120,
            },
        },
        "Value 'PERCENT' at",
    ),
    (
        "CreateFunction", "AWS::Lambda::Function", ("Timeout",), 0,
        "Invalid value for parameter Timeout, value: 0, valid min value: 1",
    ),
    (
        "PutScheduledAction", "AWS::ApplicationAutoScaling::ScalableTarget",
        ("ScheduledActions", 0, "Schedule"), 5, "Invalid type for parameter Schedule",
    ),
)  # fmt: skip


@pytest.mark.parametrize(
    ("operation", "kind", "path", "value", "said"), WRONG, ids=[f"{w[0]}-{w[2][-1]}" for w in WRONG]
)
def test_the_services_would_refuse_a_wrong_value(
    subjects: dict[str, Subject], operation, kind, path, value, said
):
    template = subjects[CONTROL].template
    if operation not in {request.operation for request in requests_of(template)}:
        template = json.loads(golden_template(SLEEPER))
    assert not complaints_about(template)
    template = changed(template, kind, path, value)
    found = [one for one in complaints_about(template) if f", {operation}: " in one]
    assert found
    assert any(said in one for one in found), found


@pytest.mark.size("all")
def test_cfn_lint_would_find_a_wrong_value(subjects: dict[str, Subject], tmp_path: Path):
    # What it has a rule for: it knows other limits than the models of the APIs.
    known = {"CreateEndpoint", "CreateEndpointConfig", "RegisterScalableTarget", "PutMetricAlarm"}
    paths = []
    for number, (operation, kind, path, value, _) in enumerate(WRONG):
        if operation in known:
            paths.append(tmp_path / f"{operation}-{number}.json")
            template = changed(subjects[CONTROL].template, kind, path, value)
            paths[-1].write_text(json.dumps(template), encoding="utf-8")
    assert sorted(linted(paths)) == sorted(path.stem for path in paths)


def changed(
    template: dict[str, Any], kind: str, path: Sequence[str | int], value: Any
) -> dict[str, Any]:
    result = copy.deepcopy(template)
    section = next(r for r in result["Resources"].values() if r["Type"] == kind)["Properties"]
    for part in path[:-1]:
        section = section[part]
    section[path[-1]] = value
    return result
