"""`slipway.cdk`: an app with models, and stacks of a team's own that use them or have endpoints."""

import collections
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_iam as iam

import slipway.cdk
from slipway.cdk import App, Endpoint, UserError
from slipway.policies import Plan, Problem, problem
from slipway.stacks.assembly import Selection
from tests.support.golden_cases import CASES
from tests.support.linting import lint
from tests.support.projects import PRODUCTION, config_text, messages, write_project
from tests.support.slipway_stack import golden_template
from tests.synth.assemblies import (
    AUTOSCALING,
    BAD,
    CONTEXT,
    Assembly,
    add_stacks,
    new_app,
    target_of,
)

FROM_GOLDEN = (
    "async", "guest", "host", "rollout-canary", "scale-to-zero", "steps", "volume-key",
    "weighted-variants",
)  # fmt: skip
MODELS = {
    **{name: (CASES / f"{name}.yaml").read_text("utf-8") for name in FROM_GOLDEN},
    "one": config_text("one", AUTOSCALING),
    "protected": config_text(
        "protected", ("\nalarms:", "  termination_protection: true\n\nalarms:")
    ),
    "bad": BAD,
    "fresh": config_text("fresh"),
}
PUBLISHED = [name for name in MODELS if name not in ("bad", "fresh")]
ENDPOINT = "arn:aws:sagemaker:us-east-1:123456789012:endpoint"


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_project(tmp_path_factory.mktemp("project"), MODELS, published=PUBLISHED)


NewApp = Callable[..., App]


@pytest.fixture
def new(root: Path, tmp_path: Path) -> NewApp:
    """Makes an app as the CDK CLI would have it."""
    return lambda **context: App(root, outdir=str(tmp_path / "out"), context=CONTEXT | context)


def team(app: App, name: str = "team") -> cdk.Stack:
    return cdk.Stack(app, name, env=app.env)


def role(stack: cdk.Stack, name: str = "Role") -> iam.Role:
    return iam.Role(stack, name, assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"))


def written(app: App) -> Assembly:
    app.synth()
    return Assembly(Path(app.outdir))


def refused(error: pytest.ExceptionInfo[UserError]) -> str:
    (message,) = messages(error.value)
    return message


def test_the_names_of_the_package_are_those_of_its_page():
    page = Path(slipway.cdk.__file__).parents[2] / "docs" / "api.md"
    text = page.read_text("utf-8")
    names = [name for name in slipway.cdk.__all__ if f"### `{name}" not in text]
    public = {
        name
        for owner in (App, Endpoint, slipway.cdk.Model)
        for name in dir(owner)
        if not name.startswith("_") and name not in (*dir(cdk.App), *dir(cdk.Resource))
    }
    names += [name for name in public if f"`{name}" not in text]
    assert names == []


def test_an_app_without_stacks_of_its_own_is_what_the_models_say(new: NewApp, root, tmp_path):
    selected = {"models": "one,fresh,guest"}
    app = written(new(**selected))
    plain = new_app(tmp_path / "plain", **selected)
    add_stacks(plain, slipway.cdk.app.Project(root), Selection.from_context(plain.node))
    plain.synth()
    for name in ("foundation", "host", "guest", "one", "fresh"):
        content = app.template(name)
        content["Rules"].pop("SourceCommit", None)
        assert content == Assembly(tmp_path / "plain").template(name), name
    assert {*app.stacks()} == {"foundation", "host", "guest", "one", "fresh"}


def test_a_team_calls_models_by_name_and_needs_no_stack_of_theirs(new: NewApp):
    app = new(models="one")
    stack = team(app)
    for name in ("fresh", "async", "scale-to-zero", "guest"):
        app.models[name].grant_invoke(role(stack, name))
    one = app.models["one"]
    assert (one.endpoint_name, one.inference_component_name) == ("one-local", None)
    assert one.endpoint_arn == f"{ENDPOINT}/one-local"
    assert app.models["guest"].endpoint_name == "host-local"
    assert app.models["guest"].inference_component_name == "guest-local"
    assembly = written(app)
    granted = {
        name.partition("DefaultPolicy")[0]: [
            (
                [item["Action"]] if isinstance(item["Action"], str) else item["Action"],
                item["Resource"],
            )
            for item in found["Properties"]["PolicyDocument"]["Statement"]
        ]
        for name, found in assembly.resources("team", "AWS::IAM::Policy").items()
    }
    both = ["sagemaker:InvokeEndpoint", "sagemaker:InvokeEndpointWithResponseStream"]
    component = ENDPOINT.replace(":endpoint", ":inference-component")
    key = "arn:aws:kms:us-east-1:123456789012:key"
    assert granted == {
        "fresh": [(both, f"{ENDPOINT}/fresh-local")],
        "scaletozero": [
            (both, [f"{ENDPOINT}/scale-to-zero-local", f"{component}/scale-to-zero-local"])
        ],
        "guest": [(both, [f"{ENDPOINT}/host-local", f"{component}/guest-local"])],
        "async": [
            (["sagemaker:InvokeEndpointAsync"], f"{ENDPOINT}/async-local"),
            (["s3:PutObject"], "arn:aws:s3:::my-requests/tiny/*"),
            (
                ["s3:GetObject"],
                ["arn:aws:s3:::my-answers/failed/*", "arn:aws:s3:::my-answers/tiny/*"],
            ),
            (["kms:GenerateDataKey"], f"{key}/0a1b2c3d-4e5f-6a7b-8c9d-0e1f2a3b4c5d"),
            (["kms:Decrypt"], f"{key}/1234abcd-12ab-34cd-56ef-1234567890ab"),
        ],
    }
    # What is selected has a stack; what a team calls needs none.
    assert {*assembly.stacks()} == {"foundation", "one", "team"}
    assert assembly.stacks()["team"]["dependencies"] == ["team.assets"]


def test_alarms_are_of_the_models_stack_which_is_added_for_them(new: NewApp):
    app = new(models="one")
    stack = team(app)
    alarms = [alarm for name in ("steps", "fresh") for alarm in app.models[name].alarms]
    again = [*app.models["steps"].alarms, *app.models["fresh"].alarms]
    assert [each.node.path for each in alarms] == [each.node.path for each in again]
    rule = cloudwatch.AlarmRule.any_of(*alarms)
    cloudwatch.CompositeAlarm(stack, "Any", alarm_rule=rule)
    widgets: list[cloudwatch.IWidget] = [
        cloudwatch.AlarmWidget(alarm=each, title="of a model") for each in alarms
    ]
    cloudwatch.Dashboard(stack, "Board", widgets=[widgets])
    assembly = written(app)
    used = json.dumps(assembly.only("team", "AWS::CloudWatch::CompositeAlarm"))
    for name in ("steps", "fresh"):
        made = assembly.resources(name, "AWS::CloudWatch::Alarm")
        # A step's alarm scales and notifies nobody.
        assert used.count(f'"{name}-local"') == sum("Scaling" not in each for each in made) > 0
    assert {"steps", "fresh"} < {*assembly.stacks()["team"]["dependencies"]}
    (report,) = assembly.annotations("fresh", "error")
    assert "the sample was never published" in report
    assert assembly.annotations("steps", "error") == []


def test_metrics_are_those_that_sagemaker_publishes_in_each_mode(new: NewApp):
    models = new().models

    def told(metric: cloudwatch.Metric) -> tuple[Any, ...]:
        dimensions = dict(metric.dimensions or {})
        return metric.namespace, metric.metric_name, metric.statistic, dimensions

    of_variant = {"EndpointName": "one-local", "VariantName": "AllTraffic"}
    one, queue, copies = models["one"], models["async"], models["scale-to-zero"]
    assert told(one.metric_latency()) == ("AWS/SageMaker", "ModelLatency", "p99", of_variant)
    assert told(one.metric_invocations())[1:] == ("Invocations", "Sum", of_variant)
    assert told(one.metric_server_errors())[1:3] == ("Invocation5XXErrors", "Sum")
    assert told(one.metric_client_errors())[1:3] == ("Invocation4XXErrors", "Sum")
    assert told(one.metric_utilization("GPUMemory", statistic="Average")) == (
        "/aws/sagemaker/Endpoints", "GPUMemoryUtilization", "Average", of_variant,
    )  # fmt: skip
    assert told(queue.metric_invocations())[1:3] == ("TimeInBacklog", "SampleCount")
    assert told(queue.metric_server_errors())[1:3] == ("InvocationFailures", "Sum")
    assert told(queue.metric_backlog())[1:] == (
        "ApproximateBacklogSize", "Average", {"EndpointName": "async-local"},
    )  # fmt: skip
    component = {"InferenceComponentName": "scale-to-zero-local"}
    assert told(copies.metric_latency(statistic="p50"))[2:] == ("p50", component)
    minutes = cdk.Duration.minutes(5)
    assert one.metric_latency(period=minutes).period.to_seconds() == 300
    assert one.metric_latency().period.to_seconds() == 60
    variants = [each.name for each in models["weighted-variants"]._plan.variants]
    chosen = models["weighted-variants"].metric_latency(variant=variants[1])
    assert told(chosen)[3]["VariantName"] == variants[1]
    with pytest.raises(UserError) as several:
        models["weighted-variants"].metric_latency()
    assert refused(several) == (
        "weighted-variants-local has several variants, and each has metrics of its own"
    )
    assert f"`variant=`: {', '.join(variants)}." in str(several.value)
    with pytest.raises(UserError) as unknown:
        one.metric_latency(variant="Canary")
    assert "has no variant 'Canary'" in refused(unknown)
    with pytest.raises(UserError) as no_queue:
        one.metric_backlog()
    assert refused(no_queue) == "one-local has no queue, and so no backlog"


def test_what_a_model_cannot_answer_is_a_report(new: NewApp):
    app = new()
    with pytest.raises(UserError) as unknown:
        app.models["onne"]
    assert refused(unknown) == "no model config matches 'onne'"
    assert "Did you mean `one`?" in str(unknown.value)
    assert "onne" not in app.models
    assert [*app.models] == sorted(MODELS)
    assert len(app.models) == len(MODELS)
    for ask in ("endpoint_name", "alarms"):
        with pytest.raises(UserError, match=r"model_configs/bad\.yaml:6:3"):
            getattr(app.models["bad"], ask)
    stack = team(app)
    anyone = iam.ServicePrincipal("events.amazonaws.com")
    with pytest.raises(UserError) as no_policy:
        app.models["one"].grant_invoke(anyone)
    assert refused(no_policy) == "this principal can have no policy that lets it call one-local"
    foreign = iam.Role.from_role_arn(stack, "Foreign", "arn:aws:iam::111122223333:role/caller")
    with pytest.raises(UserError) as elsewhere:
        app.models["one"].grant_invoke(foreign)
    assert refused(elsewhere) == (
        "a principal of account 111122223333 cannot call one-local, which is in account "
        "123456789012"
    )


def test_what_a_policy_refuses_is_in_the_models_stack_and_stops_nothing_else(root, tmp_path):
    def small(plan: Plan) -> Iterator[Problem]:
        if plan.name != "one":
            yield problem("too large", "Ask the platform team.")

    def broken(plan: Plan) -> Iterator[Problem]:
        raise RuntimeError(f"no idea of {plan.name}")

    context = {**CONTEXT, "models": "one,steps"}
    app = App(root, policies=[small], outdir=str(tmp_path / "out"), context=context)
    stack = team(app)
    app.models["steps"].grant_invoke(role(stack))
    Endpoint(team(app, "own"), "async", config="async")
    found = written(app)
    assert found.annotations("one", "error") == found.annotations("team", "error") == []
    for refused_in in ("steps", "own"):
        (report,) = found.annotations(refused_in, "error")
        assert "too large [policy " in report
    app = App(root, policies=[broken], outdir=str(tmp_path / "broken"), context=context)
    (report,) = written(app).annotations("one", "error")
    assert "RuntimeError: no idea of one" in report


ENDPOINTS = ("one", "steps", "rollout-canary", "volume-key", "async", "host", "protected")


@pytest.fixture(scope="module")
def teams(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Assembly:
    """An app with a stack that has an endpoint of each kind."""
    app = App(root, outdir=str(tmp_path_factory.mktemp("teams")), context=CONTEXT)
    stack = team(app)
    for name in ENDPOINTS:
        Endpoint(stack, name, config=name)
    # Their ids are alike without what is no letter or digit.
    Endpoint(stack, "volumekey", config="model_configs/scale-to-zero.yaml")
    Endpoint(team(app, "unpublished"), "fresh", config=root / "model_configs" / "fresh.yaml")
    Endpoint(team(app, "invalid"), "bad", config="bad")
    Endpoint(team(app, "copies"), "guest", config="guest")
    return written(app)


def own_resources(assembly: Assembly, name: str) -> list[dict[str, Any]]:
    path = name.replace("-", "")
    found = assembly.template("team")["Resources"]
    return [
        item for key, item in found.items() if key.startswith((path, "Rights")) and "Type" in item
    ]


def types_of(resources: list[dict[str, Any]]) -> collections.Counter[str]:
    return collections.Counter(
        each["Type"] for each in resources if each["Type"] != "AWS::IAM::Policy"
    )


def config_of(resources: list[dict[str, Any]]) -> dict[str, Any]:
    kind = "AWS::SageMaker::EndpointConfig"
    (found,) = (each["Properties"] for each in resources if each["Type"] == kind)
    told = {key: value for key, value in found.items() if key != "ExecutionRoleArn"}
    return {**told, "ProductionVariants": len(found["ProductionVariants"])}


@pytest.mark.parametrize("name", ["async", "host", "rollout-canary", "steps"])
def test_an_endpoint_has_the_resources_of_the_models_own_stack(teams: Assembly, name: str):
    own = [*json.loads(golden_template(name))["Resources"].values()]
    found = own_resources(teams, name)
    assert types_of(found) == types_of(own)
    assert config_of(found) == config_of(own)


def test_rights_of_endpoints_in_one_stack_name_the_stacks_own_alarms(teams: Assembly):
    text = teams.template_file("team").read_text("utf-8")
    assert ":alarm:team-rolloutcanary*" in text
    assert ":alarm:team-stepsScaling*" in text
    assert ":alarm:steps-local" not in text
    alarms = [name for name in teams.resources("team", "AWS::CloudWatch::Alarm") if "Load" in name]
    assert [name for name in alarms if name.startswith("steps")] != []
    rights = list(teams.resources("team", "AWS::IAM::Policy"))
    assert len(rights) == len({*rights}) >= 4
    assert all(name.startswith("Rights") for name in rights)
    outputs = teams.template("team")["Outputs"]
    assert {each["Value"] for name, each in outputs.items() if "EndpointName" in name} == {
        f"{name}-local" for name in (*ENDPOINTS, "scale-to-zero")
    }


def test_a_stack_with_endpoints_comes_after_what_they_need(teams: Assembly):
    stacks = teams.stacks()
    assert not {*ENDPOINTS, "fresh", "bad"} & {*stacks}, "their own stacks"
    assert "foundation" in stacks["team"]["dependencies"]
    assert stacks["team"]["properties"]["terminationProtection"] is True
    assert stacks["unpublished"]["properties"]["terminationProtection"] is False


@pytest.mark.parametrize(
    ("stack", "report"),
    [
        ("unpublished", "the sample was never published"),
        ("invalid", "6 problems\n- model_configs/bad.yaml:6:3: model.parameters"),
        ("copies", "the copies of guest run on the endpoint of host, and an `Endpoint` makes one"),
    ],
)
def test_a_model_that_cannot_be_deployed_keeps_its_stack_alone_from_it(teams, stack, report):
    (found,) = teams.annotations(stack, "error")
    assert report in found
    assert teams.annotations("team", "error") == []


@pytest.mark.size("all")
def test_cfn_lint_finds_nothing(teams: Assembly):
    file = teams.template_file("team")
    assert [str(match) for match in lint([file])[file]] == []


def test_endpoints_that_cannot_be_are_refused(new: NewApp, root: Path, tmp_path: Path):
    app = new()
    stack = team(app)
    Endpoint(stack, "one", config="one")
    app.models["steps"].alarms  # noqa: B018  # adds the model's stack
    elsewhere = cdk.Stack(app, "elsewhere", env=cdk.Environment(region="eu-west-1"))
    (root / "loose.yaml").write_text(config_text("loose"))
    where = "and the environment local is 123456789012/us-east-1"
    for place, config, options, message in (
        (stack, "one", {}, "the model one has an endpoint in this app already"),
        (stack, "steps", {}, "the model steps has an endpoint in this app already"),
        (stack, "onne", {}, "no model config matches 'onne'"),
        (stack, "loose.yaml", {}, f"{root}/loose.yaml is no config of the project in {root}, so "
         "nothing can publish it"),
        (elsewhere, "async", {}, f"the stack elsewhere is for any/eu-west-1, {where}"),
        (cdk.Stack(app, "anywhere"), "async", {}, f"the stack anywhere is for any/any, {where}"),
        (stack, "async", {"environment": "production"}, "`environment='production'` is not the "
         "environment of this app, which is local"),
    ):  # fmt: skip
        with pytest.raises(UserError) as caught:
            Endpoint(place, f"again-{config}-{len(options)}", config=config, **options)
        assert refused(caught) == message
    with pytest.raises(UserError, match="team/Inner is a nested stack, whose name only"):
        Endpoint(cdk.NestedStack(stack, "Inner"), "nested", config="async")
    with pytest.raises(UserError) as two:
        new()
    assert refused(two) == (
        f"two apps of one program write to {app.outdir}, and the CDK CLI reads one"
    )
    with pytest.raises(UserError, match="no Slipway project here"):
        App(tmp_path, outdir=str(tmp_path / "other"))


def test_an_endpoint_in_an_app_of_the_cdk_adds_nothing_else(root: Path, tmp_path: Path):
    app = new_app(tmp_path)
    target = target_of(PRODUCTION)
    stack = cdk.Stack(app, "team", env=target)
    # The sample's lock says nothing of a release.
    endpoint = Endpoint(
        stack, "one", config=root / "model_configs" / "one.yaml", environment="production"
    )
    assert endpoint.endpoint_name == "one-production"
    app.synth()
    found = Assembly(tmp_path)
    assert [*found.stacks()] == ["team"]
    parameters = found.template("team")["Parameters"].values()
    assert {each["Default"] for each in parameters} == {
        "/slipway/production/artifact-key-arn",
        "/slipway/production/notification-topic-arn",
        "/cdk-bootstrap/hnb659fds/version",
    }


def test_an_endpoint_in_a_stage_is_ordered_by_its_pipeline(new: NewApp):
    app = new(models="one")
    stage = cdk.Stage(app, "Production", env=app.env)
    Endpoint(cdk.Stack(stage, "team"), "one", config="one")
    assert {*written(app).stacks()} == {"foundation"}
