"""Waits until SageMaker has given back what it holds in the account for a deleted endpoint.

Network interfaces and key grants go minutes after DeleteEndpoint. SageMaker needs the execution
role for it: https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_DeleteEndpoint.html
(read 2026-11-28). CloudFormation deletes the role after the resource that calls this.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ..answers import Client, Wait

# Less than the 15 minutes that Lambda gives a function.
_POLLS, _POLL_SECONDS = 80, 10.0
# AWS's "few minutes", for what names nobody and may be the endpoint's.
_POLLS_OF_UNKNOWN = 30


def await_release(held: Mapping[str, Any], client: Client, wait: Wait) -> list[str]:
    """Waits, but not for ever, because the stack has to go.

    Args:
        held: RoleArn and RoleId of the endpoint's role. SubnetIds and SecurityGroupIds if it has a
            network, and VolumeKeyArn if it has a key.
        client: makes clients.
        wait: waits for some seconds.

    Returns:
        What was waited for, and what is still there.
    """
    role, account = held["RoleArn"].rpartition("/")[2], held["RoleArn"].split(":")[4]
    polls, own, unknown = 0, list[str](), list[str]()
    while polls < _POLLS:
        own, unknown = [], []
        try:
            for name, principal in _found(held, client):
                if held["RoleId"] in principal or f"/{role}" in principal:
                    own.append(name)
                # The ids of roles and users, with which EC2 names its caller.
                elif not principal.startswith(("AROA", "AIDA")) and f":{account}:" not in principal:
                    unknown.append(name)
        except Exception as error:  # for example, the key's policy does not allow it
            unknown.append(f"unknown: {error}")
        if not own and (polls >= _POLLS_OF_UNKNOWN or not unknown):
            break
        wait(_POLL_SECONDS)
        polls += 1
    waited = f"waited {polls * _POLL_SECONDS:.0f} s for SageMaker to give back what it holds"
    still = f"still there: {', '.join(own + unknown)}"
    return [waited] * bool(polls) + [still] * bool(own or unknown)


def _found(held: Mapping[str, Any], client: Client) -> Iterator[tuple[str, str]]:
    """Yields interfaces and grants, and the principals that they name."""
    if "SubnetIds" in held:
        named = {"subnet-id": held["SubnetIds"], "group-id": held["SecurityGroupIds"]}
        filters = [{"Name": name, "Values": values} for name, values in named.items()]
        for item in client("ec2").describe_network_interfaces(Filters=filters)["NetworkInterfaces"]:
            yield item["NetworkInterfaceId"], item.get("RequesterId", "")
    marker: dict[str, str] | None = {}
    while "VolumeKeyArn" in held and marker is not None:
        page = client("kms").list_grants(KeyId=held["VolumeKeyArn"], **marker)
        marker = {"Marker": page["NextMarker"]} if "NextMarker" in page else None
        for item in page["Grants"]:
            principals = (item.get(f"{kind}Principal") or "" for kind in ("Grantee", "Retiring"))
            yield f"grant {item['GrantId']}", " ".join(principals)
