"""Checks of an environment beyond the form of its fields."""

from collections.abc import Iterator, Mapping
from pathlib import Path

from slipway.codes.code import Code
from slipway.config.environments import LONGEST_BUCKET_NAME, Environment
from slipway.config.names import LOCAL, PROJECT_KEY
from slipway.config.sections.image_builds import PUBLIC_BUILDS
from slipway.config.sections.keys import is_of_region
from slipway.errors import Kind, Problem

_Field = tuple[str, ...]


def environment_problems(
    environment: Environment, environments: Mapping[str, object], root: Path
) -> Iterator[Problem]:
    """Yields the problems of one environment.

    `environments` is everything in environments.yaml, in the file's order.
    """
    yield from _bucket_name(environment)
    yield from _image_builds(environment, environments, root)
    yield from _boundary(environment)
    yield from _network(environment)
    yield from _remote_publishing(environment)


def _bucket_name(environment: Environment) -> Iterator[Problem]:
    excess, name = environment.bucket_name_excess, environment.access_log_bucket
    if excess:
        yield Problem(
            Code.NAME_TOO_LONG,
            Kind.VALUE,
            f"the bucket {name} would have {len(name)} characters, and S3 allows "
            f"{LONGEST_BUCKET_NAME}",
            f"Shorten the project or the environment's name by {excess}.",
            (PROJECT_KEY,) if environment.project else (environment.name,),
        )


def _image_builds(
    environment: Environment, environments: Mapping[str, object], root: Path
) -> Iterator[Problem]:
    builds = environment.image_builds
    field = (environment.name, "image_builds")
    if environment.is_local and builds != PUBLIC_BUILDS:
        yield Problem(
            Code.IMAGE_BUILDS,
            Kind.COMPATIBILITY,
            "the embedded AWS builds no images",
            "Remove `image_builds`; set it in the environments that are real accounts.",
            field,
        )
        return
    if builds.repository_key is not None:
        yield from _repository_key(
            environment, builds.repository_key, environments, (*field, "repository_key")
        )
    if builds.ca_bundle is not None:
        yield from _ca_bundle(builds.ca_bundle, root, (*field, "ca_bundle"))


def _repository_key(
    environment: Environment, key: str, environments: Mapping[str, object], field: _Field
) -> Iterator[Problem]:
    if not is_of_region(key, environment.region):
        yield Problem(
            Code.KEY_ELSEWHERE,
            Kind.VALUE,
            f"{key} is in another region than the environment",
            "A key encrypts in its own region alone: name a key of the environment's region.",
            field,
        )
    owner = _owner(environment, environments)
    if owner != environment.name:
        yield Problem(
            Code.IMAGE_BUILDS,
            Kind.COMPATIBILITY,
            f"the repositories belong to the environment {owner}, which comes first in the file "
            "and has the same account and region",
            f"Remove this line; `repository_key` of {owner} sets their key.",
            field,
        )


def _owner(environment: Environment, environments: Mapping[str, object]) -> str:
    """Returns the first environment of the same account and region, which has the repositories."""
    for name, content in environments.items():
        if (
            isinstance(content, Mapping)
            and name != LOCAL
            and content.get("account") == environment.account
            and content.get("region") == environment.region
        ):
            return name
    return environment.name


def _ca_bundle(path: str, root: Path, field: _Field) -> Iterator[Problem]:
    try:
        content = (root / path).read_bytes()
    except OSError as error:
        yield Problem(
            Code.UNUSABLE_CA_BUNDLE,
            Kind.VALUE,
            f"{path} cannot be read: {error.strerror}",
            "Name a PEM file below the project's folder.",
            field,
        )
        return
    if b"-----BEGIN CERTIFICATE-----" not in content:
        yield Problem(
            Code.UNUSABLE_CA_BUNDLE,
            Kind.VALUE,
            f"{path} holds no certificate",
            "Name a PEM file: its certificates begin with `-----BEGIN CERTIFICATE-----`.",
            field,
        )


def _boundary(environment: Environment) -> Iterator[Problem]:
    # IAM would refuse a policy of another account.
    arn = environment.permissions_boundary_arn
    if arn is None or arn.split(":")[4] in ("aws", environment.account):
        return
    yield Problem(
        Code.ROLE_BOUNDARY,
        Kind.VALUE,
        f"the policy belongs to account {arn.split(':')[4]}, and environment "
        f"`{environment.name}` is {environment.account}",
        "Name a policy of the environment's account, or a policy that AWS manages.",
        (environment.name, "permissions_boundary_arn"),
    )


def _network(environment: Environment) -> Iterator[Problem]:
    network = environment.network
    if network is None:
        return
    field = (environment.name, "network")
    for name, values in (
        ("subnet_ids", network.subnet_ids),
        ("security_group_ids", network.security_group_ids),
        ("vpc_endpoints", network.vpc_endpoints),
        ("route_table_ids", network.route_table_ids),
    ):
        for value in dict.fromkeys(values):
            if values.count(value) > 1:
                yield Problem(
                    Code.NETWORK,
                    Kind.VALUE,
                    f"{value} is listed twice",
                    "Remove one of them.",
                    (*field, name),
                )
    wants_s3 = "s3" in network.vpc_endpoints
    if wants_s3 and not network.route_table_ids:
        yield Problem(
            Code.NETWORK,
            Kind.COMPATIBILITY,
            "the VPC endpoint for S3 needs the route tables that lead to it",
            "Add `route_table_ids`: the route tables of `subnet_ids`.",
            (*field, "vpc_endpoints"),
        )
    if network.route_table_ids and not wants_s3:
        yield Problem(
            Code.NETWORK,
            Kind.COMPATIBILITY,
            "`route_table_ids` has no effect without `s3` in `vpc_endpoints`",
            "Add `s3` to `vpc_endpoints`, or remove `route_table_ids`.",
            (*field, "route_table_ids"),
        )


def _remote_publishing(environment: Environment) -> Iterator[Problem]:
    settings = environment.remote_publishing
    secret = None if settings is None else settings.hub_token_secret
    if secret is not None and secret.split(":")[3] != environment.region:
        yield Problem(
            Code.SECRET_ELSEWHERE,
            Kind.VALUE,
            f"{secret} is in another region than the environment",
            "A build reads secrets of its own region: replicate the secret to "
            f"{environment.region}, and name the ARN of the replica.",
            (environment.name, "remote_publishing", "hub_token_secret"),
        )
