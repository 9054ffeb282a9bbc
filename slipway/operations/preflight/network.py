"""The network of an endpoint, compared with what the account has."""

from collections.abc import Iterator, Sequence
from typing import Any

from slipway.access import Access, paged
from slipway.codes.code import Code
from slipway.errors import Problem
from slipway.operations.preflight.findings import Finding, wrong
from slipway.planning.plan import DeploymentPlan
from slipway.planning.vpc import VpcPlan

_EVERYWHERE = "0.0.0.0/0"
_HTTPS = 443


def compare_network(
    plan: DeploymentPlan, vpc: VpcPlan, access: Access, made_group: str | None
) -> Iterator[Finding]:
    """Looks for subnets, groups and routes that would fail the endpoint after minutes.

    `made_group` is the security group that the foundation makes.
    """
    ec2 = access.client("ec2")
    groups = vpc.security_group_ids or ((made_group,) if made_group else ())
    subnets = _found(ec2, "describe_subnets", "Subnets", "subnet-id", vpc.subnet_ids)
    rules = _found(ec2, "describe_security_groups", "SecurityGroups", "group-id", groups)
    known = [each["SubnetId"] for each in subnets] + [each["GroupId"] for each in rules]
    place = f"{plan.environment.account}/{plan.environment.region}"
    problems = [
        _problem(f"{missing} is not in {place}", "Correct the id in `endpoint.vpc` or `network`.")
        for missing in (*vpc.subnet_ids, *groups)
        if missing not in known
    ]
    vpc_ids = {each["VpcId"] for each in (*subnets, *rules)}
    if len(vpc_ids) > 1:
        message = "the subnets and security groups belong to several VPCs: "
        message += ", ".join(sorted(vpc_ids))
        problems.append(_problem(message, "Name subnets and security groups of one VPC."))
    if not problems and rules:
        problems += _unreachable(ec2, subnets, rules)
    yield from problems
    if not problems:
        yield f"network of {len(vpc.subnet_ids)} subnets"


# Any: boto3's clients and answers have no types.
def _found(
    ec2: Any, operation: str, member: str, name: str, ids: Sequence[str]
) -> list[dict[str, Any]]:
    """Returns what exists of the ids; a filter is no error where an id does not exist."""
    if not ids:
        return []
    named = [{"Name": name, "Values": list(ids)}]
    return list(paged(ec2, operation, member, Filters=named))


def _unreachable(
    ec2: Any, subnets: Sequence[dict[str, Any]], groups: Sequence[dict[str, Any]]
) -> Iterator[Problem]:
    if not any(_lets_https_out(rule) for each in groups for rule in each["IpPermissionsEgress"]):
        names = ", ".join(each["GroupId"] for each in groups)
        yield _problem(
            f"no rule of {names} lets HTTPS out, so the model data cannot come from S3",
            "Add an outbound rule for TCP port 443 to one of the security groups.",
        )
    vpc_id = subnets[0]["VpcId"]
    of_vpc = [{"Name": "vpc-id", "Values": [vpc_id]}]
    tables = ec2.describe_route_tables(Filters=of_vpc)["RouteTables"]
    for subnet in subnets:
        if not any(_leads_to_s3(route) for route in _routes(tables, subnet["SubnetId"])):
            yield _problem(
                f"{subnet['SubnetId']} has no route to S3, so the model data cannot come",
                "Add a gateway endpoint for S3 to its route table, for example with `s3` in the "
                "environment's `network.vpc_endpoints`, or a default route to a NAT gateway.",
            )


def _lets_https_out(rule: dict[str, Any]) -> bool:
    if rule["IpProtocol"] == "-1":
        return True
    return bool(rule["IpProtocol"] == "tcp" and rule["FromPort"] <= _HTTPS <= rule["ToPort"])


def _routes(tables: Sequence[dict[str, Any]], subnet_id: str) -> list[dict[str, Any]]:
    """Returns the routes of a subnet's own table, or of the VPC's main one."""
    own = [
        table
        for table in tables
        if any(each.get("SubnetId") == subnet_id for each in table["Associations"])
    ]
    main = [table for table in tables if any(each["Main"] for each in table["Associations"])]
    return [route for table in own or main for route in table["Routes"]]


def _leads_to_s3(route: dict[str, Any]) -> bool:
    """Returns whether a route goes to a gateway endpoint, or out by a way without a public address.

    A gateway endpoint's route is the only one to a prefix list of AWS.
    """
    gateway = route.get("GatewayId", "")
    if gateway.startswith("vpce-"):
        return True
    return route.get("DestinationCidrBlock") == _EVERYWHERE and not gateway.startswith("igw-")


def _problem(message: str, remedy: str) -> Problem:
    return wrong(Code.NETWORK_IN_ACCOUNT, message, remedy)
