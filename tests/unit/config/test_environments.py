"""Environments: named targets, checked as strictly as models."""

import re

import boto3
import pytest

from slipway.config.environments import Environment
from slipway.config.load import environment_names, load_environment
from slipway.errors import UserError
from tests.support.projects import ENVIRONMENTS, LOCAL, PRODUCTION, refusal


def load(root, text, name="production"):
    (root / "environments.yaml").write_text(text, encoding="utf-8")
    return load_environment(name, root)


def report(root, text, name="production"):
    return str(refusal(load, root, text, name))


def test_an_environment_is_loaded_by_its_key_and_the_project_is_of_all(tmp_path):
    assert load(tmp_path, ENVIRONMENTS, "local") == LOCAL
    assert load(tmp_path, ENVIRONMENTS) == PRODUCTION
    assert LOCAL.is_local
    assert not PRODUCTION.is_local
    assert PRODUCTION.artifact_bucket == "slipway-production-210987654321-eu-west-1"
    found = load(tmp_path, f"project: search\n{ENVIRONMENTS}")
    assert environment_names(tmp_path) == ["local", "production"]
    assert found == PRODUCTION.model_copy(update={"project": "search"})
    assert load_environment("local", tmp_path).project == "search"


KEY = "arn:aws:kms:us-east-1:210987654321:key/1234abcd"
OTHER_KEY = "A key encrypts in its own region alone: name a key of the environment's region."
ELSEWHERE = "arn:aws:secretsmanager:us-east-1:210987654321:secret:hub-token-AbCdEf"
BOUNDARY = "  permissions_boundary_arn: arn:aws:iam::111122223333:policy/boundary\n"
NETWORK = """\
  network:
    vpc_id: vpc-0a1b2c3d
    subnet_ids: [subnet-0a1b2c3d, subnet-4e5f6a7b]
    vpc_endpoints: [s3, sts]
    route_table_ids: [rtb-0a1b2c3d]
"""
SECOND = """\
staging:
  account: "210987654321"
  region: eu-west-1
  image_builds:
    repository_key: artifact
"""


# Text, and the first problem of its last environment.
MISTAKES = [
    (
        ENVIRONMENTS.replace("production:", "Prod_1:"),
        'environments.yaml:5:1: Prod_1: "Prod_1" does not have the form ^[a-z][a-z0-9]*$ '
        "[SW205]\n    Use lower-case letters and digits, a letter first.",
    ),
    (
        ENVIRONMENTS.replace("production:\n", "production:\n  name: local\n"),
        "environments.yaml:6:3: production.name: an environment's name is its key in the file "
        "[SW109]\n    Remove this line.",
    ),
    (
        "x: 1\n",
        "environments.yaml:1:1: x: is not a mapping [SW104]\n    Give it `account` and `region`.",
    ),
    (
        ENVIRONMENTS.replace("production:\n", "production:\n  project: search\n"),
        "environments.yaml:6:3: production.project: the project is the same for every "
        "environment [SW109]\n    Remove this line.",
    ),
    # Before S3 refuses the name.
    (
        f"project: {'p' * 20}\n{ENVIRONMENTS}",
        f"environments.yaml:1:1: project: the bucket slipway-{'p' * 20}-production-"
        "210987654321-eu-west-1-logs would have 67 characters, and S3 allows 63 [SW215]\n"
        "    Shorten the project or the environment's name by 4.",
    ),
    (
        f"{ENVIRONMENTS}  artifact_key_arn: {KEY}\n",
        f'environments.yaml:9:3: production.artifact_key_arn: "{KEY}" is in another region than '
        f"the environment [SW216]\n    {OTHER_KEY} Example: "
        '`artifact_key_arn: "arn:aws:kms:eu-west-1:123456789012:key/'
        '1234abcd-12ab-34cd-56ef-1234567890ab"`.',
    ),
    (
        f"{ENVIRONMENTS}  image_builds:\n    repository_key: {KEY}\n",
        f"environments.yaml:10:5: production.image_builds.repository_key: {KEY} is in another "
        f"region than the environment [SW216]\n    {OTHER_KEY}",
    ),
    (
        f"{ENVIRONMENTS}  remote_publishing:\n    hub_token_secret: {ELSEWHERE}\n",
        "environments.yaml:10:5: production.remote_publishing.hub_token_secret: "
        f"{ELSEWHERE} is in another region than the environment [SW655]\n"
        "    A build reads secrets of its own region: replicate the secret to eu-west-1, and "
        "name the ARN of the replica.",
    ),
    (
        ENVIRONMENTS + '  artifact_readers: ["210987654321"]\n',
        'environments.yaml:9:3: production.artifact_readers: ["210987654321"] has the '
        "environment's own account [SW223]\n"
        "    Leave it out: the foundation lets its own account read the artifacts. The list is "
        'for other accounts. Example: `artifact_readers: ["111122223333"]`.',
    ),
    (
        ENVIRONMENTS + SECOND,
        "environments.yaml:13:5: staging.image_builds.repository_key: the repositories belong "
        "to the environment production, which comes first in the file and has the same account "
        "and region [SW221]\n    Remove this line; `repository_key` of production sets their key.",
    ),
    (
        ENVIRONMENTS + BOUNDARY,
        "environments.yaml:9:3: production.permissions_boundary_arn: the policy belongs to "
        "account 111122223333, and environment `production` is 210987654321 [SW333]\n"
        "    Name a policy of the environment's account, or a policy that AWS manages.",
    ),
    (
        ENVIRONMENTS + NETWORK.replace("    route_table_ids: [rtb-0a1b2c3d]\n", ""),
        "environments.yaml:12:5: production.network.vpc_endpoints: the VPC endpoint for S3 "
        "needs the route tables that lead to it [SW331]\n"
        "    Add `route_table_ids`: the route tables of `subnet_ids`.",
    ),
    (
        ENVIRONMENTS + NETWORK.replace("[s3, sts]", "[sts]"),
        "environments.yaml:13:5: production.network.route_table_ids: `route_table_ids` has no "
        "effect without `s3` in `vpc_endpoints` [SW331]\n"
        "    Add `s3` to `vpc_endpoints`, or remove `route_table_ids`.",
    ),
]


@pytest.mark.parametrize(("text", "problem"), MISTAKES)
def test_a_mistake_has_its_place_and_its_remedy(tmp_path, text, problem):
    name = re.findall(r"(?m)^(\w+):", text)[-1]
    assert report(tmp_path, text, name) == f"1 problem\n- {problem}"


@pytest.mark.parametrize(
    ("lines", "place"),
    [
        (f"  log_key: {KEY}\n", f'9:3: production.log_key: "{KEY}" is in another region than '),
        ("  log_key: alias/logs\n", "9:3: production.log_key: "),
        (
            "  remote_publishing: {compute: xlarge}\n",
            "9:23: production.remote_publishing.compute: ",
        ),
        (
            "  artifact_readers: [111122223333]\n",
            "9:22: production.artifact_readers[0]: 111122223333 is not ",
        ),
        (
            "  image_builds: {index_url: 'https://user:password@mirror.example.com/simple'}\n",
            "9:18: production.image_builds.index_url: ",
        ),
    ],
)
def test_other_mistakes_have_their_place(tmp_path, lines, place):
    found = report(tmp_path, ENVIRONMENTS + lines)
    assert found.startswith(f"1 problem\n- environments.yaml:{place}")


def test_ids_of_a_network_are_named_once(tmp_path):
    twice = NETWORK.replace("subnet-4e5f6a7b", "subnet-0a1b2c3d").replace("sts]", "sts, sts]")
    assert report(tmp_path, ENVIRONMENTS + twice) == (
        "2 problems\n"
        "- environments.yaml:11:5: production.network.subnet_ids: subnet-0a1b2c3d is listed twice "
        "[SW331]\n"
        "    Remove one of them.\n"
        "- environments.yaml:12:5: production.network.vpc_endpoints: sts is listed twice [SW331]\n"
        "    Remove one of them."
    )


def test_what_agrees_with_the_environment_is_taken(tmp_path):
    key = KEY.replace("us-east-1", "eu-west-1")
    lines = f"  artifact_key_arn: {key}\n  log_key: artifact\n{NETWORK}"
    found = load(tmp_path, f"{ENVIRONMENTS}{lines}  image_builds:\n    repository_key: {key}\n")
    assert found.artifact_key_arn == found.image_builds.repository_key == key
    assert (found.log_key, found.known_log_key_arn) == ("artifact", key)
    assert found.model_copy(update={"artifact_key_arn": None}).known_log_key_arn is None
    assert found.network.security_group_ids == ()
    assert found.network.vpc_endpoints == ("s3", "sts")
    for owner in ("aws", "210987654321"):
        text = ENVIRONMENTS + BOUNDARY.replace("111122223333", owner)
        found = load(tmp_path, text).permissions_boundary_arn
        assert found == f"arn:aws:iam::{owner}:policy/boundary"
    # The repositories of another region are others.
    staging = load(tmp_path, ENVIRONMENTS + SECOND.replace("west-1", "west-2"), "staging")
    assert staging.image_builds.repository_key == "artifact"


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


def test_an_unknown_environment_has_near_ones_and_a_missing_file_is_told(tmp_path):
    with pytest.raises(UserError, match=r"environments\.yaml: the file cannot be read"):
        load_environment("local", tmp_path)
    assert report(tmp_path, ENVIRONMENTS, "prodution") == (
        "1 problem\n- environments.yaml:1:1: there is no environment 'prodution' [SW208]\n"
        "    Did you mean `production`? Known are local, production; choose one with "
        "`-c env=NAME` (cdk) or `--env NAME` (slipway), or add it to the file."
    )


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
    assert report(tmp_path, BUILDS, "x") == (
        "1 problem\n"
        "- environments.yaml:7:5: x.image_builds.ca_bundle: certificates/mirror.pem cannot be "
        "read: No such file or directory [SW217]\n"
        "    Name a PEM file below the project's folder."
    )
    certificate = tmp_path / "certificates" / "mirror.pem"
    certificate.parent.mkdir()
    certificate.write_text("no", encoding="utf-8")
    assert "certificates/mirror.pem holds no certificate" in report(tmp_path, BUILDS, "x")
    certificate.write_text("# ours\n-----BEGIN CERTIFICATE-----\n", encoding="utf-8")
    builds = load(tmp_path, BUILDS, "x").image_builds
    assert builds.registry == "mirror.example.com:5000/nvcr"
    assert builds.vpc.vpc_id == "vpc-0a1b2c3d"
    assert report(tmp_path, BUILDS.replace("x:", "local:", 1), "local").endswith(
        "- environments.yaml:4:3: local.image_builds: the embedded AWS builds no images [SW221]\n"
        "    Remove `image_builds`; set it in the environments that are real accounts."
    )
