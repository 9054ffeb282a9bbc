"""Examples of `environments.yaml`, whole and by section."""

from collections.abc import Mapping

from tools.reference.config_examples import Example

# By the heading's title; the whole file has none.
ENVIRONMENTS: Mapping[str, Example] = {
    "": Example(
        "environments",
        """\
project: search               # only where projects share an account

local:                        # the embedded AWS
  account: "123456789012"
  region: us-east-1
  artifacts: sample

production:
  account: "111122223333"
  region: eu-west-1
  notification_emails: [ml-on-call@example.com]
  log_key: artifact
""",
    ),
    "network": Example(
        "environments",
        """\
production:
  account: "111122223333"
  region: eu-west-1
  network:
    vpc_id: vpc-0a1b2c3d
    subnet_ids: [subnet-0a1b2c3d, subnet-4e5f6a7b]
    vpc_endpoints: [s3]
    route_table_ids: [rtb-0a1b2c3d]
""",
    ),
    "image_builds": Example(
        "environments",
        """\
production:
  account: "111122223333"
  region: eu-west-1
  image_builds:
    registry: mirror.example.com/nvcr
    index_url: https://mirror.example.com/pypi/simple
    ca_bundle: certificates/mirror.pem
""",
    ),
    "image_builds.vpc": Example(
        "environments",
        """\
production:
  account: "111122223333"
  region: eu-west-1
  image_builds:
    vpc:
      vpc_id: vpc-0a1b2c3d
      subnet_ids: [subnet-0a1b2c3d]
      security_group_ids: [sg-0a1b2c3d]
""",
    ),
    "remote_publishing": Example(
        "environments",
        """\
production:
  account: "111122223333"
  region: eu-west-1
  remote_publishing:
    compute: large
    weights: ["s3://my-models/"]
    hub_token_secret: arn:aws:secretsmanager:eu-west-1:111122223333:secret:hub-token-AbCdEf
""",
    ),
}
