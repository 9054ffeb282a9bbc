"""Networks in the EC2 of an embedded account."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Network:
    """A VPC with two private subnets in two zones, without a way to S3."""

    ec2: Any
    vpc_id: str
    subnet_ids: tuple[str, ...]
    route_table_id: str

    def group(self, name: str) -> str:
        """Makes a security group, which lets everything out; returns its id."""
        made = self.ec2.create_security_group(GroupName=name, Description=name, VpcId=self.vpc_id)
        group_id: str = made["GroupId"]
        return group_id

    def closed_group(self, name: str) -> str:
        """Makes a security group that lets nothing out; returns its id."""
        group_id = self.group(name)
        everything = {"IpProtocol": "-1", "IpRanges": [{"CidrIp": "0.0.0.0/0"}]}
        self.ec2.revoke_security_group_egress(GroupId=group_id, IpPermissions=[everything])
        return group_id

    def open(self, group_id: str, **peers: Any) -> None:
        rule = {"IpProtocol": "tcp", "FromPort": 443, "ToPort": 443, **peers}
        self.ec2.authorize_security_group_egress(GroupId=group_id, IpPermissions=[rule])

    def connect_s3(self) -> None:
        self.ec2.create_vpc_endpoint(
            VpcId=self.vpc_id,
            ServiceName=f"com.amazonaws.{self.ec2.meta.region_name}.s3",
            VpcEndpointType="Gateway",
            RouteTableIds=[self.route_table_id],
        )

    def s3_prefix_list(self) -> str:
        tables = self.ec2.describe_route_tables(RouteTableIds=[self.route_table_id])
        (found,) = [
            route["DestinationPrefixListId"]
            for route in tables["RouteTables"][0]["Routes"]
            if "DestinationPrefixListId" in route
        ]
        return str(found)

    def interfaces(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.ec2.describe_network_interfaces(
            Filters=[{"Name": "vpc-id", "Values": [self.vpc_id]}]
        )["NetworkInterfaces"]
        return found


def make_network(ec2: Any) -> Network:
    vpc_id = ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
    region = ec2.meta.region_name
    subnet_ids = tuple(
        ec2.create_subnet(
            VpcId=vpc_id, CidrBlock=f"10.0.{number}.0/24", AvailabilityZone=f"{region}{zone}"
        )["Subnet"]["SubnetId"]
        for number, zone in enumerate("ab", 1)
    )
    (table,) = ec2.describe_route_tables(Filters=[{"Name": "vpc-id", "Values": [vpc_id]}])[
        "RouteTables"
    ]
    return Network(ec2, vpc_id, subnet_ids, table["RouteTableId"])
