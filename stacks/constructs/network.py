"""What the foundation adds to a VPC: the endpoints' security group, and VPC endpoints."""

from aws_cdk import aws_ec2 as ec2
from constructs import Construct

from slipway.config.environments import Environment
from slipway.config.sections.network import Network

_HTTPS = 443


class EndpointNetwork(Construct):
    """A security group unless the environment names some, and the VPC endpoints that it asks for.

    The security group is in the foundation and not in the stacks of endpoints. SageMaker's network
    interfaces outlive an endpoint by minutes, and EC2 deletes no group that an interface has.
    `security_group_id` is None if the environment names its groups.
    """

    def __init__(
        self, scope: Construct, construct_id: str, *, environment: Environment, network: Network
    ) -> None:
        super().__init__(scope, construct_id)
        self.security_group_id: str | None = None
        groups = list(network.security_group_ids)
        if not groups:
            group = self._group(
                "SecurityGroup",
                network,
                f"Slipway: endpoints of {environment.name}",
                egress=[
                    # S3 has no address that is known before: its prefix list differs by region.
                    ec2.CfnSecurityGroup.EgressProperty(
                        ip_protocol="tcp",
                        from_port=_HTTPS,
                        to_port=_HTTPS,
                        cidr_ip="0.0.0.0/0",
                        description="HTTPS to S3 and other services",
                    )
                ],
            )
            self.security_group_id = group.attr_group_id
            groups = [group.attr_group_id]
        interfaces = [service for name in network.vpc_endpoints for service in _services(name)]
        if "s3" in network.vpc_endpoints:
            ec2.CfnVPCEndpoint(
                self,
                "S3",
                vpc_id=network.vpc_id,
                service_name=ec2.GatewayVpcEndpointAwsService.S3.name,
                vpc_endpoint_type="Gateway",
                route_table_ids=list(network.route_table_ids),
            )
        if not interfaces:
            return
        entrance = self._group(
            "VpcEndpointSecurityGroup",
            network,
            f"Slipway: VPC endpoints of {environment.name}",
            ingress=[
                ec2.CfnSecurityGroup.IngressProperty(
                    ip_protocol="tcp",
                    from_port=_HTTPS,
                    to_port=_HTTPS,
                    source_security_group_id=group_id,
                    description="HTTPS from endpoints",
                )
                for group_id in groups
            ],
        )
        for construct_name, service in interfaces:
            ec2.CfnVPCEndpoint(
                self,
                construct_name,
                vpc_id=network.vpc_id,
                service_name=service.name,
                vpc_endpoint_type="Interface",
                private_dns_enabled=True,
                subnet_ids=list(network.subnet_ids),
                security_group_ids=[entrance.attr_group_id],
            )

    def _group(
        self,
        construct_id: str,
        network: Network,
        description: str,
        *,
        ingress: list[ec2.CfnSecurityGroup.IngressProperty] | None = None,
        egress: list[ec2.CfnSecurityGroup.EgressProperty] | None = None,
    ) -> ec2.CfnSecurityGroup:
        return ec2.CfnSecurityGroup(
            self,
            construct_id,
            vpc_id=network.vpc_id,
            group_description=description,
            security_group_ingress=ingress,
            # EC2 lets everything out of a group without a rule, so one leads nowhere.
            security_group_egress=egress
            or [
                ec2.CfnSecurityGroup.EgressProperty(
                    ip_protocol="icmp",
                    from_port=252,
                    to_port=86,
                    cidr_ip="255.255.255.255/32",
                    description="Nothing goes out",
                )
            ],
        )


def _services(name: str) -> list[tuple[str, ec2.InterfaceVpcEndpointAwsService]]:
    """Returns the interface endpoints of a choice, with their construct ids."""
    known = ec2.InterfaceVpcEndpointAwsService
    return {
        "s3": [],
        "ecr": [("EcrApi", known.ECR), ("EcrDkr", known.ECR_DOCKER)],
        "logs": [("Logs", known.CLOUDWATCH_LOGS)],
        "monitoring": [("Monitoring", known.CLOUDWATCH_MONITORING)],
        "sts": [("Sts", known.STS)],
    }[name]
