"""Models that share an endpoint: which models those are, and what a host and a guest may be."""

import re
from typing import cast

import pytest
import yaml

from slipway.cli.plan_text import describe_plan
from slipway.codes.code import Code
from slipway.config.schema import ModelConfig
from slipway.errors import UserError
from slipway.planning.advice import Subject, components_may_be_refused
from slipway.planning.families import deployment_of
from slipway.planning.plan import ArtifactPlan
from slipway.project import Project
from slipway.shared_endpoints import endpoint_name, models_sharing_endpoint
from tests.support.projects import (
    ENVIRONMENTS,
    LOCAL,
    PRODUCTION,
    config_text,
    refusal,
    write_project,
)
from tests.support.shared_endpoints import guest_text, host_text, models

ISOLATION = ("\nendpoint:\n", "\nendpoint:\n  network_isolation: false\n")
ROLE = (
    "\nendpoint:\n",
    "\nendpoint:\n  execution_role_arn: arn:aws:iam::123456789012:role/inference\n",
)
VPC = (
    "\nendpoint:\n",
    "\nendpoint:\n  vpc: {subnet_ids: [subnet-0a1b2c3d], security_group_ids: [sg-0a1b2c3d]}\n",
)
KEPT = ("artifacts:\n", "artifacts:\n  isolated: true\n")
NO_RELEASE = ("  release:\n    path: build/tiny\n    target: sm75\n", "")


@pytest.fixture
def project(tmp_path):
    return Project(write_project(tmp_path, models(), published=models()))


def test_a_guest_has_the_endpoint_of_its_host_which_pays_for_the_copies_of_all(project):
    plan = project.plan("titles", LOCAL)
    assert (plan.stack_name, plan.endpoint_name, plan.host) == (
        "titles-local", "search-local", "search",
    )  # fmt: skip
    assert plan.component is not None
    assert plan.component.name == "titles-local"
    assert plan.log_group_name == "/aws/sagemaker/InferenceComponents/titles-local"
    assert plan.cost.instances.maximum == 0.0
    plan = project.plan("search", LOCAL)
    assert [guest.name for guest in plan.guests] == ["tags", "titles"]
    # Six copies of each model, and four on an instance.
    assert plan.max_instance_count == 3 * 2
    alone = project.plan("alone", LOCAL)
    assert alone.guests == ()
    hourly = {price.instance_type: price.usd for price in plan.cost.hourly}
    assert plan.cost.instances.maximum == pytest.approx(
        6 * 730 * (hourly["ml.g4dn.12xlarge"] or 0), abs=0.01
    )
    told = describe_plan(project.plan("search", LOCAL))
    assert re.search(r"^guests +copies of tags, titles run here too$", told, re.MULTILINE)
    assert re.search(r"^to zero +0 to 6 instances", told, re.MULTILINE)


def test_those_beside_a_model(project):
    assert models_sharing_endpoint(project, "search", LOCAL) == ["tags", "titles"]
    assert models_sharing_endpoint(project, "titles", LOCAL) == ["search"]
    assert models_sharing_endpoint(project, "alone", LOCAL) == []
    assert endpoint_name(project, "titles", LOCAL) == "search-local"
    assert endpoint_name(project, "search", LOCAL) == "search-local"
    (project.root / "model_configs" / "titles.yaml").write_text("name: [")
    assert endpoint_name(Project(project.root), "titles", LOCAL) == "titles-local"


def test_a_guest_of_one_environment_is_a_guest_there_alone(tmp_path):
    only_local = guest_text().replace("    endpoint_of: search\n", "") + (
        "\nenvironments:\n  local:\n    endpoint:\n      scale_to_zero: {endpoint_of: search}\n"
    )
    root = write_project(tmp_path, {"search": host_text(), "titles": only_local})
    project = Project(root)
    assert [g.name for g in project.plan("search", LOCAL, allow_unpublished=True).guests] == [
        "titles"
    ]
    assert project.plan("search", PRODUCTION, allow_unpublished=True).guests == ()
    assert project.plan("titles", PRODUCTION, allow_unpublished=True).host is None


@pytest.mark.parametrize(
    ("host", "guest", "expected"),
    [
        (host_text(), guest_text(host="titles"),
         "endpoint_of: titles cannot run on its own endpoint as a guest"),
        (host_text(), guest_text(host="serach"),
         "endpoint_of: there is no model `serach` whose endpoint could be shared"),
        (config_text("search"), guest_text(),
         "endpoint_of: the endpoint of `search` has `mode: realtime`, and hosts no copies"),
        (host_text("search", ("max_copies: 6", "max_copies: 0")), guest_text(),
         "endpoint_of: the config of `search` has problems, so its endpoint is not known"),
        (host_text("search", KEPT), guest_text(),
         "endpoint_of: the role of `search` runs every copy on its endpoint, and reads the files "
         "of `search` alone"),
        (host_text(), guest_text("titles", ("[ml.g4dn.12xlarge]", "[ml.g5.12xlarge]")),
         "endpoint.instances: the instances differ from those of `search`: ml.g4dn.12xlarge"),
        (host_text(), guest_text("titles", ROLE),
         "endpoint.execution_role_arn: the role of `search` runs every copy on its endpoint, and "
         "`execution_role_arn` differs"),
        (host_text(), guest_text("titles", ISOLATION),
         "endpoint.network_isolation: `network_isolation` is true for every copy on the endpoint "
         "of `search`"),
        (host_text("search", VPC), guest_text(),
         "endpoint.vpc: the network differs from the network of `search`, which holds for every "
         "copy on its endpoint"),
    ],
)  # fmt: skip
def test_an_endpoint_that_cannot_host_the_guest_is_refused(tmp_path, host, guest, expected):
    project = Project(write_project(tmp_path, {"search": host, "titles": guest}))
    problems = project.check("titles", [LOCAL]).problems
    [found] = [each for each in problems if each.code == Code.SHARED_ENDPOINT]
    assert f"{expected} [SW448]" in str(found)
    assert found.location is not None


@pytest.mark.parametrize(
    ("instance", "per_copy", "expected"),
    [
        ("ml.g4dn.12xlarge", 1, None),
        ("ml.g4dn.12xlarge", 4, "all 4 accelerators of ml.g4dn.12xlarge"),
        ("ml.g4dn.xlarge", 1, "the only accelerator of ml.g4dn.xlarge"),
    ],
)
def test_a_guest_that_shares_no_instance_is_warned_of(tmp_path, instance, per_copy, expected):
    edits = (
        ("[ml.g4dn.12xlarge]", f"[{instance}]"),
        ("accelerators_per_copy: 1", f"accelerators_per_copy: {per_copy}"),
    )
    texts = {"search": host_text("search", edits[0]), "titles": guest_text("titles", *edits)}
    plan = Project(write_project(tmp_path, texts)).plan("titles", LOCAL, allow_unpublished=True)
    found = [each.message for each in plan.warnings if each.code == "guest-shares-no-instance"]
    assert len(found) == (expected is not None)
    assert all(f"A copy takes {expected}, so no instance holds" in each for each in found)


@pytest.mark.parametrize(
    ("instance", "region", "expected"),
    [
        ("ml.m6i.large", "us-east-1", None),
        ("ml.m5.large", "us-east-1", "on ml.m5.large. "),
        ("ml.m5.large", "us-gov-west-1", "on ml.m5.large in us-gov-west-1. "),
    ],
)
def test_a_place_that_awss_sdk_refuses_is_warned_of(tmp_path, instance, region, expected):
    text = host_text("search", ("[ml.g4dn.12xlarge]", f"[{instance}]")).replace(
        "    accelerators_per_copy: 1\n", ""
    )
    deployment = deployment_of(
        ModelConfig.model_validate(yaml.safe_load(text)),
        LOCAL.model_copy(update={"region": region}),
    )
    subject = Subject(deployment, cast(ArtifactPlan, None))  # which this advice does not ask
    found = [each.message for each in components_may_be_refused(subject)]
    assert [f"inference components {expected}" in each for each in found] == (
        [] if expected is None else [True]
    )


def test_a_guest_of_a_guest_is_sent_to_the_host(tmp_path):
    texts = {**models(), "more": guest_text("more", host="titles")}
    [problem] = Project(write_project(tmp_path, texts)).check("more", [LOCAL]).problems
    assert problem.message == (
        "`titles` has no endpoint of its own: its copies run on the endpoint of `search`"
    )
    assert problem.remedy == "Name `search`."


def test_a_host_that_is_not_deployed_there_has_no_endpoint_to_share(tmp_path):
    texts = {"search": host_text("search", NO_RELEASE), "titles": guest_text()}
    project = Project(write_project(tmp_path, texts, environments=ENVIRONMENTS))
    with pytest.raises(UserError, match="no release for production, so there is no endpoint"):
        project.plan("titles", PRODUCTION, allow_unpublished=True)


def test_a_host_is_not_planned_without_a_guest_that_has_problems(project):
    """Otherwise the running copies of the guest would lose their instances and rights."""
    path = project.root / "model_configs" / "titles.yaml"
    path.write_text(path.read_text().replace("max_copies: 6", "max_copies: six"))
    [problem] = refusal(Project(project.root).plan, "search", LOCAL).problems
    assert problem.code == Code.SHARED_ENDPOINT
    assert "Run `slipway validate titles`" in problem.remedy
    assert problem.location is not None


@pytest.mark.parametrize(
    ("broken", "text", "of_host", "of_guest"),
    [
        # The rest of the file says that it is a guest, and its copies may run.
        ("titles", "max_copies: six", ["tags", "titles"], ["search"]),
        # Nobody knows any more whose guest it is, and another model could be destroyed with it.
        ("titles", "max_copies: [", ["tags"], ["search"]),
        ("search", "max_copies: six", ["tags", "titles"], ["search"]),
    ],
)
def test_those_beside_a_model_with_problems(tmp_path, broken, text, of_host, of_guest):
    texts = dict(models())
    published = [name for name in ("search", "tags", "titles") if name != broken]
    texts[broken] = texts[broken].replace("max_copies: 6", text)
    project = Project(write_project(tmp_path, texts, published=published))
    assert models_sharing_endpoint(project, "search", LOCAL) == of_host
    assert models_sharing_endpoint(project, published[-1], LOCAL) == of_guest
