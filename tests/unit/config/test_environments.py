"""Environments: named targets, checked as strictly as models."""

import boto3
import pytest

from slipway.config.environments import Environment
from slipway.config.load import environment_names, load_environment
from slipway.errors import UserError
from tests.support.projects import ENVIRONMENTS, LOCAL, PRODUCTION


def report(root, text: str, name: str) -> str:
    (root / "environments.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(UserError) as caught:
        load_environment(name, root)
    return str(caught.value)


def test_an_environment_is_loaded_by_its_key(tmp_path):
    (tmp_path / "environments.yaml").write_text(ENVIRONMENTS, encoding="utf-8")
    assert load_environment("local", tmp_path) == LOCAL
    assert load_environment("production", tmp_path) == PRODUCTION
    assert LOCAL.is_local
    assert not PRODUCTION.is_local
    assert PRODUCTION.artifact_bucket == "slipway-production-210987654321-eu-west-1"


def test_the_artifact_key_is_of_the_environments_region(tmp_path):
    text = ENVIRONMENTS + "  artifact_key_arn: arn:aws:kms:us-east-1:210987654321:key/1234abcd\n"
    assert report(tmp_path, text, "production") == (
        "1 problem\n"
        "- environments.yaml:9:3: production.artifact_key_arn: "
        '"arn:aws:kms:us-east-1:210987654321:key/1234abcd" is in another region than the '
        "environment [SW216]\n"
        "    A key encrypts in its own region alone: name a key of the environment's region. "
        "Example: "
        '`artifact_key_arn: "arn:aws:kms:eu-west-1:123456789012:key/'
        '1234abcd-12ab-34cd-56ef-1234567890ab"`.'
    )
    (tmp_path / "environments.yaml").write_text(text.replace("kms:us-east-1", "kms:eu-west-1"))
    found = load_environment("production", tmp_path).artifact_key_arn
    assert found == "arn:aws:kms:eu-west-1:210987654321:key/1234abcd"


def test_an_unknown_one_is_answered_with_those_there_are(tmp_path):
    assert report(tmp_path, ENVIRONMENTS, "prodution") == (
        "1 problem\n"
        "- environments.yaml:1:1: there is no environment 'prodution' [SW208]\n"
        "    Did you mean `production`? Known are local, production; choose one with "
        "`-c env=NAME` (cdk) or `--env NAME` (slipway), or add it to the file."
    )


def test_everything_wrong_with_one_is_reported_with_its_place(tmp_path):
    text = (
        "x:\n  account: 123456789012\n  region: mars\n  artifacts: none\n"
        "  notification_emails: [nobody]\n  vpc: v\n"
    )
    found = report(tmp_path, text, "x").splitlines()
    assert [line for line in found if line.startswith(("- ", "5 "))] == [
        "5 problems",
        "- environments.yaml:2:3: x.account: 123456789012 is not a text [SW108]",
        '- environments.yaml:3:3: x.region: "mars" does not have the form '
        "^[a-z]{2}(-[a-z]+)+-[0-9]$ [SW205]",
        '- environments.yaml:4:3: x.artifacts: "none" is not known here [SW202]',
        '- environments.yaml:5:25: x.notification_emails[0]: "nobody" does not have the form '
        r"^[^@\s]+@[^@\s]+$ [SW205]",
        "- environments.yaml:6:3: x.vpc: unknown field [SW106]",
    ]


def test_a_bad_name_is_reported_once(tmp_path):
    assert report(tmp_path, ENVIRONMENTS.replace("production:", "Prod_1:"), "Prod_1") == (
        "1 problem\n"
        '- environments.yaml:5:1: Prod_1: "Prod_1" does not have the form ^[a-z][a-z0-9]*$ '
        "[SW205]\n"
        "    Use lower-case letters and digits, a letter first."
    )


def test_one_cannot_call_itself_by_another_name(tmp_path):
    text = ENVIRONMENTS.replace("production:\n", "production:\n  name: local\n")
    assert report(tmp_path, text, "production") == (
        "1 problem\n"
        "- environments.yaml:6:3: production.name: an environment's name is its key in the file "
        "[SW109]\n"
        "    Remove this line."
    )


def test_one_that_is_not_a_mapping_is_refused(tmp_path):
    assert report(tmp_path, "x: 1\n", "x") == (
        "1 problem\n"
        "- environments.yaml:1:1: x: is not a mapping [SW104]\n"
        "    Give it `account` and `region`."
    )


def test_without_the_file_there_is_a_report(tmp_path):
    with pytest.raises(UserError, match=r"environments\.yaml: the file cannot be read"):
        load_environment("local", tmp_path)


def test_the_bucket_and_its_logs_bucket_have_a_name_s3_takes_in_every_region():
    regions = [
        region
        for partition in ("aws", "aws-cn", "aws-us-gov", "aws-iso", "aws-iso-b")
        for region in boto3.Session().get_available_regions("s3", partition)
    ]
    assert len(regions) > 30
    for region in regions:
        environment = Environment(name="e" * 20, account="123456789012", region=region)
        assert len(f"{environment.artifact_bucket}-logs") <= 63


def test_the_project_is_of_every_environment(tmp_path):
    (tmp_path / "environments.yaml").write_text(f"project: search\n{ENVIRONMENTS}")
    assert environment_names(tmp_path) == ["local", "production"]
    found = load_environment("production", tmp_path)
    assert found == PRODUCTION.model_copy(update={"project": "search"})
    assert load_environment("local", tmp_path).project == "search"


@pytest.mark.parametrize(
    ("project", "line"),
    [
        ("Search-1", '"Search-1" does not have the form ^[a-z][a-z0-9]*$ [SW205]'),
        ("{account: x}", '{"account": "x"} is not a text [SW108]'),
        ("[search]", '["search"] is not a text [SW108]'),
    ],
)
def test_a_wrong_project_is_reported_with_its_place(tmp_path, project, line):
    text = f"project: {project}\n{ENVIRONMENTS}"
    assert report(tmp_path, text, "local").splitlines()[:2] == [
        "1 problem",
        f"- environments.yaml:1:1: project: {line}",
    ]


def test_an_environment_has_no_project_of_its_own(tmp_path):
    text = ENVIRONMENTS.replace("production:\n", "production:\n  project: search\n")
    assert report(tmp_path, text, "production") == (
        "1 problem\n"
        "- environments.yaml:6:3: production.project: the project is the same for every "
        "environment [SW109]\n"
        "    Remove this line."
    )


def test_a_bucket_name_that_s3_refuses_is_found_before_s3_does(tmp_path):
    text = f"project: {'p' * 20}\n{ENVIRONMENTS}"
    bucket = f"slipway-{'p' * 20}-production-210987654321-eu-west-1-logs"
    assert report(tmp_path, text, "production") == (
        "1 problem\n"
        f"- environments.yaml:1:1: project: the bucket {bucket} would have 67 characters, and S3 "
        "allows 63 [SW215]\n"
        "    Shorten the project or the environment's name by 4."
    )


BUILDS = """\
x:
  account: "210987654321"
  region: eu-west-1
  image_builds:
    registry: mirror.example.com:5000/nvcr
    index_url: https://mirror.example.com/simple
    ca_bundle: certificates/mirror.pem
    vpc:
      vpc_id: vpc-0a1b2c3d
      subnet_ids: [subnet-0a1b2c3d]
      security_group_ids: [sg-0a1b2c3d]
"""


def test_builds_of_images_have_mirrors_and_a_network(tmp_path):
    (tmp_path / "environments.yaml").write_text(BUILDS, encoding="utf-8")
    (tmp_path / "certificates").mkdir()
    certificate = "# ours\n-----BEGIN CERTIFICATE-----\n"
    (tmp_path / "certificates" / "mirror.pem").write_text(certificate, encoding="utf-8")
    builds = load_environment("x", tmp_path).image_builds
    assert builds.registry == "mirror.example.com:5000/nvcr"
    assert builds.vpc is not None
    assert builds.vpc.vpc_id == "vpc-0a1b2c3d"


def test_certificates_that_are_none_are_named_with_their_place(tmp_path):
    assert report(tmp_path, BUILDS, "x") == (
        "1 problem\n"
        "- environments.yaml:7:5: x.image_builds.ca_bundle: certificates/mirror.pem cannot be "
        "read: No such file or directory [SW217]\n"
        "    Name a PEM file below the project's folder."
    )
    (tmp_path / "certificates").mkdir()
    (tmp_path / "certificates" / "mirror.pem").write_text("no", encoding="utf-8")
    assert "certificates/mirror.pem holds no certificate" in report(tmp_path, BUILDS, "x")


def test_an_address_of_a_mirror_holds_no_password(tmp_path):
    text = BUILDS.replace("https://mirror", "https://user:password@mirror")
    assert "environments.yaml:6:5: x.image_builds.index_url: " in report(tmp_path, text, "x")


def test_the_embedded_aws_builds_no_images(tmp_path):
    text = BUILDS.replace("x:", "local:", 1).replace("    ca_bundle: certificates/mirror.pem\n", "")
    assert report(tmp_path, text, "local") == (
        "1 problem\n"
        "- environments.yaml:4:3: local.image_builds: the embedded AWS builds no images [SW221]\n"
        "    Remove `image_builds`; set it in the environments that are real accounts."
    )


def test_log_groups_and_repositories_take_the_artifact_key_or_another_one(tmp_path):
    key = "arn:aws:kms:eu-west-1:210987654321:key/1234abcd"
    lines = f"  log_key: artifact\n  image_builds:\n    repository_key: {key}\n"
    (tmp_path / "environments.yaml").write_text(ENVIRONMENTS + lines, encoding="utf-8")
    found = load_environment("production", tmp_path)
    assert (found.log_key, found.image_builds.repository_key) == ("artifact", key)
    assert found.known_log_key_arn is None
    named = found.model_copy(update={"artifact_key_arn": key})
    assert named.known_log_key_arn == key


def test_keys_are_of_the_environments_region(tmp_path):
    key = "arn:aws:kms:us-east-1:210987654321:key/1234abcd"
    lines = f"  log_key: {key}\n  image_builds:\n    repository_key: {key}\n"
    assert report(tmp_path, ENVIRONMENTS + lines, "production").startswith(
        "1 problem\n"
        f'- environments.yaml:9:3: production.log_key: "{key}" is in another region than the '
        "environment [SW216]\n"
    )
    lines = lines.replace(f"  log_key: {key}\n", "")
    assert report(tmp_path, ENVIRONMENTS + lines, "production") == (
        "1 problem\n"
        f"- environments.yaml:10:5: production.image_builds.repository_key: {key} is in another "
        "region than the environment [SW216]\n"
        "    A key encrypts in its own region alone: name a key of the environment's region."
    )


def test_the_secret_of_a_build_is_of_the_environments_region(tmp_path):
    arn = "arn:aws:secretsmanager:us-east-1:210987654321:secret:hub-token-AbCdEf"
    lines = f"  remote_publishing:\n    hub_token_secret: {arn}\n"
    assert report(tmp_path, ENVIRONMENTS + lines, "production") == (
        "1 problem\n"
        f"- environments.yaml:10:5: production.remote_publishing.hub_token_secret: {arn} is in "
        "another region than the environment [SW655]\n"
        "    A build reads secrets of its own region: replicate the secret to eu-west-1, and name "
        "the ARN of the replica."
    )
    assert report(
        tmp_path, ENVIRONMENTS + "  remote_publishing: {compute: xlarge}\n", "production"
    ).startswith("1 problem\n- environments.yaml:9:23: production.remote_publishing.compute: ")


def test_readers_of_the_artifacts_are_other_accounts(tmp_path):
    lines = '  artifact_readers: ["210987654321"]\n'
    assert report(tmp_path, ENVIRONMENTS + lines, "production") == (
        "1 problem\n"
        '- environments.yaml:9:3: production.artifact_readers: ["210987654321"] has the '
        "environment's own account [SW223]\n"
        "    Leave it out: the foundation lets its own account read the artifacts. The list is for "
        'other accounts. Example: `artifact_readers: ["111122223333"]`.'
    )
    lines = "  artifact_readers: [111122223333]\n"
    assert report(tmp_path, ENVIRONMENTS + lines, "production").startswith(
        "1 problem\n- environments.yaml:9:22: production.artifact_readers[0]: 111122223333 is not "
    )


def test_an_alias_is_no_key(tmp_path):
    assert "environments.yaml:9:3: production.log_key: " in report(
        tmp_path, ENVIRONMENTS + "  log_key: alias/logs\n", "production"
    )


def test_the_key_of_a_repository_is_set_where_the_repository_is(tmp_path):
    second = (
        'staging:\n  account: "210987654321"\n  region: eu-west-1\n'
        "  image_builds:\n    repository_key: artifact\n"
    )
    assert report(tmp_path, ENVIRONMENTS + second, "staging") == (
        "1 problem\n"
        "- environments.yaml:13:5: staging.image_builds.repository_key: the repositories belong to "
        "the environment production, which comes first in the file and has the same account and "
        "region [SW221]\n"
        "    Remove this line; `repository_key` of production sets their key."
    )
    elsewhere = second.replace("eu-west-1", "eu-west-2")
    (tmp_path / "environments.yaml").write_text(ENVIRONMENTS + elsewhere, encoding="utf-8")
    assert load_environment("staging", tmp_path).image_builds.repository_key == "artifact"


def test_a_permissions_boundary_is_of_the_account_or_of_aws(tmp_path):
    line = "  permissions_boundary_arn: arn:aws:iam::111122223333:policy/boundary\n"
    assert report(tmp_path, ENVIRONMENTS + line, "production") == (
        "1 problem\n"
        "- environments.yaml:9:3: production.permissions_boundary_arn: the policy belongs to "
        "account 111122223333, and environment `production` is 210987654321 [SW333]\n"
        "    Name a policy of the environment's account, or a policy that AWS manages."
    )
    for owner in ("aws", "210987654321"):
        text = ENVIRONMENTS + line.replace("111122223333", owner)
        (tmp_path / "environments.yaml").write_text(text, encoding="utf-8")
        found = load_environment("production", tmp_path).permissions_boundary_arn
        assert found == f"arn:aws:iam::{owner}:policy/boundary"
