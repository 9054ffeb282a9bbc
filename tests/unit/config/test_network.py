"""An environment's network: what goes together in it."""

from pathlib import Path

import pytest

from slipway.config.load import load_environment
from slipway.errors import UserError
from tests.support.projects import ENVIRONMENTS

NETWORK = """\
  network:
    vpc_id: vpc-0a1b2c3d
    subnet_ids: [subnet-0a1b2c3d, subnet-4e5f6a7b]
    vpc_endpoints: [s3, sts]
    route_table_ids: [rtb-0a1b2c3d]
"""


def report(root: Path, network: str) -> str:
    (root / "environments.yaml").write_text(ENVIRONMENTS + network, encoding="utf-8")
    with pytest.raises(UserError) as caught:
        load_environment("production", root)
    return str(caught.value)


def test_a_network_needs_a_vpc_and_its_subnets(tmp_path: Path) -> None:
    (tmp_path / "environments.yaml").write_text(ENVIRONMENTS + NETWORK, encoding="utf-8")
    network = load_environment("production", tmp_path).network
    assert network is not None
    assert network.security_group_ids == ()
    assert network.vpc_endpoints == ("s3", "sts")


def test_the_endpoint_for_s3_and_route_tables_need_each_other(tmp_path: Path) -> None:
    without = NETWORK.replace("    route_table_ids: [rtb-0a1b2c3d]\n", "")
    assert report(tmp_path, without) == (
        "1 problem\n"
        "- environments.yaml:12:5: production.network.vpc_endpoints: the VPC endpoint for S3 needs "
        "the route tables that lead to it [SW331]\n"
        "    Add `route_table_ids`: the route tables of `subnet_ids`."
    )
    assert report(tmp_path, NETWORK.replace("[s3, sts]", "[sts]")) == (
        "1 problem\n"
        "- environments.yaml:13:5: production.network.route_table_ids: `route_table_ids` has no "
        "effect without `s3` in `vpc_endpoints` [SW331]\n"
        "    Add `s3` to `vpc_endpoints`, or remove `route_table_ids`."
    )


def test_ids_are_named_once(tmp_path: Path) -> None:
    twice = NETWORK.replace("subnet-4e5f6a7b", "subnet-0a1b2c3d").replace("sts]", "sts, sts]")
    assert report(tmp_path, twice) == (
        "2 problems\n"
        "- environments.yaml:11:5: production.network.subnet_ids: subnet-0a1b2c3d is listed twice "
        "[SW331]\n"
        "    Remove one of them.\n"
        "- environments.yaml:12:5: production.network.vpc_endpoints: sts is listed twice [SW331]\n"
        "    Remove one of them."
    )
