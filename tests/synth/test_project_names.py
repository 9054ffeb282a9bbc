"""With a project every name that an account knows has it; without one names stay as they are."""

import json
from typing import Any

import pytest

from slipway.config.environments import Environment
from slipway.embedded_aws.cloudformation.resources.catalog import own_handlers
from slipway.project import Project
from tests.support.projects import ENVIRONMENTS, PRODUCTION, write_project
from tests.synth.assemblies import MODELS, Assembly, synthesised

NAMES = {handler.type_name: handler.name_property for handler in own_handlers()}
# A scaling policy's name is its target's.
NAMES["AWS::ApplicationAutoScaling::ScalingPolicy"] = None


@pytest.fixture(scope="module")
def with_project(tmp_path_factory: pytest.TempPathFactory) -> Assembly:
    root = write_project(
        tmp_path_factory.mktemp("project"),
        {"scaled": MODELS["scaled"]},
        published=["scaled"],
        environments=f"project: search\n{ENVIRONMENTS}",
    )
    directory = tmp_path_factory.mktemp("cdk.out")
    return synthesised(Project(root), directory, environment="production")


def fixed_names(assembly: Assembly) -> dict[str, str]:
    """Every name that a template chooses: of resources and of the parameters it reads."""
    found: dict[str, str] = {}
    for construct_id, stack in assembly.stacks().items():
        found[construct_id] = stack["properties"].get("stackName", construct_id)
        template = assembly.template(construct_id)
        for logical_id, resource in template["Resources"].items():
            name = resource.get("Properties", {}).get(NAMES.get(resource["Type"]) or "")
            if isinstance(name, str):
                found[f"{construct_id}/{logical_id}"] = name
        for logical_id, parameter in template.get("Parameters", {}).items():
            if parameter["Default"].startswith("/slipway"):
                found[f"{construct_id}/{logical_id}"] = parameter["Default"]
    return found


def test_every_name_and_parameter_has_the_project(with_project: Assembly):
    found = fixed_names(with_project)
    assert {name for name in found.values() if "search" not in name} == set()
    assert set(found.values()) == {
        "search--foundation-production",
        "search--image-tensorrt-production",
        "search--scaled-production",
        "search--scaled-production-eu-west-1",
        "/aws/sagemaker/Endpoints/search--scaled-production",
        "/slipway/search/production/artifact-key-arn",
        "/slipway/search/production/compile-role-arn",
        "/slipway/search/production/notification-topic-arn",
        "alias/slipway-search-production",
        "slipway-search-production-210987654321-eu-west-1",
        "slipway-search-production-210987654321-eu-west-1-logs",
        "slipway/search/tensorrt",
    }


def test_no_role_reaches_into_another_project(with_project: Assembly):
    for construct_id in with_project.stacks():
        for role in with_project.resources(construct_id, "AWS::IAM::Role").values():
            for resource in _resources(role["Properties"].get("Policies", [])):
                assert "slipway" not in resource or "search" in resource


def _resources(policies: list[dict[str, Any]]) -> list[str]:
    return [
        json.dumps(resource)
        for policy in policies
        for statement in policy["PolicyDocument"]["Statement"]
        for resource in (
            statement["Resource"]
            if isinstance(statement["Resource"], list)
            else [statement["Resource"]]
        )
    ]


def test_every_resource_of_a_project_carries_its_tag(with_project: Assembly):
    for construct_id in with_project.stacks():
        for role in with_project.resources(construct_id, "AWS::IAM::Role").values():
            tags = {tag["Key"]: tag["Value"] for tag in role["Properties"]["Tags"]}
            assert tags["slipway:project"] == "search"
            assert tags["slipway:environment"] == "production"


def test_without_a_project_the_names_are_those_of_earlier_releases():
    assert PRODUCTION.stack_name("foundation") == "foundation-production"
    assert PRODUCTION.artifact_bucket == "slipway-production-210987654321-eu-west-1"
    assert PRODUCTION.parameter_prefix == "/slipway/production/"
    assert PRODUCTION.key_alias == "slipway-production"
    assert PRODUCTION.repository_prefix == "slipway/"
    assert PRODUCTION.tags == {"slipway:environment": "production"}


@pytest.mark.parametrize(
    ("one", "other"),
    [(("", "b"), ("b", "b")), (("a", "b"), ("b", "b"))],
    ids=["without a project", "of another project"],
)
def test_two_projects_have_no_name_in_common(one, other):
    def names(project: str, environment: str) -> set[str]:
        place = Environment(
            name=environment, project=project, account="123456789012", region="eu-west-1"
        )
        models = ("a", "b", "a-b", "b-a", "foundation", "b-foundation")
        return {
            *(place.stack_name(name) for name in models),
            place.artifact_bucket,
            place.access_log_bucket,
            place.key_alias,
            *(f"{place.parameter_prefix}{name}" for name in ("artifact-key-arn", "b")),
            *(f"{place.repository_prefix}{name}" for name in ("tensorrt", "lmi")),
        }

    assert names(*one) & names(*other) == set()
