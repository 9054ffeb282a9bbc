"""Waits until SageMaker has given back what it holds in the account for a deleted endpoint.

Network interfaces and key grants go minutes after DeleteEndpoint. SageMaker needs the execution
role for it: https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_DeleteEndpoint.html
(read 2026-11-28). CloudFormation deletes the role after the resource that calls this.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from ..answers import Client, Wait

# Less than the 15 minutes that Lambda gives a function.
_POLLS, _POLL_SECONDS = 80, 10.0
# AWS's "few minutes", for what cannot be told from another endpoint's.
_POLLS_OF_UNKNOWN = 30
# The ids of roles and users, with which EC2 names its caller.
_PRINCIPAL_IDS = ("AROA", "AIDA")


def await_release(held: Mapping[str, Any], client: Client, wait: Wait) -> list[str]:
    """Waits, but not for ever: what stays is named, because the stack has to go.

    Args:
        held: the role as RoleArn and RoleId, and as far as the endpoint has them: SubnetIds with
            SecurityGroupIds, and VolumeKeyArn.
        client: makes clients.
        wait: waits for some seconds.

    Returns:
        What was waited for, or what SageMaker still holds.
    """
    polls, own, unknown = 0, list[str](), list[str]()
    while polls < _POLLS:
        own, unknown = [], []
        try:
            for name, is_own in (*_interfaces(held, client), *_grants(held, client)):
                (own if is_own else unknown).append(name)
        # It may be an outage of a service, or a key's policy.
        except Exception as error:
            unknown.append(f"unknown: {error}")
        if not own and (polls >= _POLLS_OF_UNKNOWN or not unknown):
            break
        wait(_POLL_SECONDS)
        polls += 1
    waited = f"waited {polls * _POLL_SECONDS:.0f} s for SageMaker to give back what it holds"
    still = f"still there: {', '.join(own + unknown)}"
    return [waited] * bool(polls) + [still] * bool(own or unknown)


# Both yield names, and whether the role made what has the name; False if nobody is known.
def _interfaces(held: Mapping[str, Any], client: Client) -> Iterator[tuple[str, bool]]:
    if "SubnetIds" not in held:
        return
    filters = {"subnet-id": held["SubnetIds"], "group-id": held["SecurityGroupIds"]}
    for item in client("ec2").describe_network_interfaces(
        Filters=[{"Name": name, "Values": values} for name, values in filters.items()]
    )["NetworkInterfaces"]:
        requester = item.get("RequesterId", "")
        is_own = requester.startswith(held["RoleId"])
        if is_own or not requester.startswith(_PRINCIPAL_IDS):
            yield item["NetworkInterfaceId"], is_own


def _grants(held: Mapping[str, Any], client: Client) -> Iterator[tuple[str, bool]]:
    page: dict[str, Any] = {"NextMarker": None}
    account, role = held["RoleArn"].split(":")[4], held["RoleArn"].rpartition("/")[2]
    while "VolumeKeyArn" in held and "NextMarker" in page:
        marker = {"Marker": page["NextMarker"]} if page["NextMarker"] else {}
        page = client("kms").list_grants(KeyId=held["VolumeKeyArn"], **marker)
        for grant in page["Grants"]:
            is_own = f"/{role}" in json.dumps(grant, default=str)
            # A grant to another principal of this account is another endpoint's, or no endpoint's.
            if is_own or f":{account}:" not in grant.get("GranteePrincipal", ""):
                yield f"grant {grant['GrantId']}", is_own
