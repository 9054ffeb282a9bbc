"""What an environment changes in every stack: names, keys and the partition."""

from pathlib import Path
from typing import Any

import pytest

from slipway.config.environments import Environment
from slipway.embedded_aws.cloudformation.resources.catalog import own_handlers
from slipway.project import Project
from tests.support.linting import lint
from tests.support.projects import ENVIRONMENTS, PRODUCTION, write_project
from tests.synth.assemblies import MODELS, Assembly, synthesised

NAMES = {handler.type_name: handler.name_property for handler in own_handlers()}
# A scaling policy's name is its target's.
NAMES["AWS::ApplicationAutoScaling::ScalingPolicy"] = None
IMAGES = "image-tensorrt"


def synthesised_in(folder: Path, environments: str, name: str = "production") -> Assembly:
    models = {"scaled": MODELS["scaled"]}
    root = write_project(folder / "project", models, published=models, environments=environments)
    # Other tests run the CDK's own checks of such templates, which take seconds.
    return synthesised(Project(root), folder / "cdk.out", environment=name)


# Names. With a project all that an account knows have it; without one they stay as they are.


@pytest.fixture(scope="module")
def with_project(tmp_path_factory: pytest.TempPathFactory) -> Assembly:
    return synthesised_in(tmp_path_factory.mktemp("named"), f"project: search\n{ENVIRONMENTS}")


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


def test_every_role_has_the_projects_tag_and_reaches_into_no_other(with_project: Assembly):
    for construct_id in with_project.stacks():
        for role in with_project.resources(construct_id, "AWS::IAM::Role").values():
            tags = {tag["Key"]: tag["Value"] for tag in role["Properties"]["Tags"]}
            assert tags["slipway:project"] == "search"
            assert tags["slipway:environment"] == "production"
            for policy in role["Properties"].get("Policies", []):
                for statement in policy["PolicyDocument"]["Statement"]:
                    named = statement["Resource"]
                    for resource in named if isinstance(named, list) else [named]:
                        assert "slipway" not in str(resource) or "search" in str(resource)


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


# Keys

KEY = "arn:aws:kms:eu-west-1:210987654321:key/1234abcd-12ab-34cd-56ef-1234567890ab"
OTHER_KEY = "arn:aws:kms:eu-west-1:210987654321:key/5678ef01-12ab-34cd-56ef-1234567890ab"
OF_THE_FOUNDATION = {"Ref": "ArtifactKeyArn"}


AES = {"EncryptionType": "AES256"}


@pytest.mark.parametrize(
    ("lines", "of_guard", "of_others", "repository"),
    [
        ("", None, None, AES),
        # For the guard even the key waits, unless it is known.
        ("log_key: artifact", None, OF_THE_FOUNDATION, AES),
        (f"artifact_key_arn: {KEY}\n  log_key: artifact", KEY, OF_THE_FOUNDATION, AES),
        ("image_builds: {repository_key: artifact}", None, None,
         {"EncryptionType": "KMS", "KmsKey": OF_THE_FOUNDATION}),
        (f"log_key: {KEY}\n  image_builds: {{repository_key: {OTHER_KEY}}}", KEY, KEY,
         {"EncryptionType": "KMS", "KmsKey": OTHER_KEY}),
    ],
    ids=["none", "artifact", "artifact that is known", "repository", "others"],
)  # fmt: skip
def test_a_key_is_in_every_log_group_and_in_the_repository(
    tmp_path: Path, lines: str, of_guard: Any, of_others: Any, repository: Any
) -> None:
    assembly = synthesised_in(tmp_path, f"{ENVIRONMENTS}  {lines}\n")
    keys = {
        stack: [each["Properties"].get("KmsKeyId") for each in groups.values()]
        for stack in ("foundation", IMAGES, "scaled")
        if (groups := assembly.resources(stack, "AWS::Logs::LogGroup"))
    }
    assert keys == {"foundation": [of_guard], IMAGES: [of_others] * 2, "scaled": [of_others] * 2}
    made = assembly.only(IMAGES, "AWS::ECR::Repository")["Properties"]
    assert made["EncryptionConfiguration"] == repository
    needs_foundation = OF_THE_FOUNDATION in (of_others, repository.get("KmsKey"))
    assert ("foundation" in assembly.stacks()[IMAGES]["dependencies"]) == needs_foundation
    parameters = assembly.template(IMAGES)["Parameters"]
    assert ("ArtifactKeyArn" in parameters) == needs_foundation
    if needs_foundation:
        assert parameters["ArtifactKeyArn"]["Default"] == "/slipway/production/artifact-key-arn"


# Partitions

ENVIRONMENT = """\
there:
  account: "210987654321"
  region: {region}
  notification_emails: [on-call@example.com]
"""
STACKS = ("foundation", IMAGES, "scaled")


@pytest.mark.size("all")
@pytest.mark.parametrize(
    ("partition", "region"), [("aws-cn", "cn-north-1"), ("aws-us-gov", "us-gov-west-1")]
)
def test_templates_name_their_own_partition_and_lint(
    tmp_path: Path, partition: str, region: str
) -> None:
    # cfn-lint takes the place of the CDK's own check, which knows no regions.
    assembly = synthesised_in(tmp_path, ENVIRONMENT.format(region=region), "there")
    assert set(assembly.stacks()) == set(STACKS)
    for construct_id in STACKS:
        assert assembly.annotations(construct_id, "error") == []
        text = assembly.template_file(construct_id).read_text("utf-8")
        assert "arn:aws:" not in text
        assert f"arn:{partition}:" in text
    found = lint([assembly.template_file(construct_id) for construct_id in STACKS], region)
    assert [str(match) for matches in found.values() for match in matches] == []
