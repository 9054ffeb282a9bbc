"""Patches moto's EC2: it deletes a security group in use, and EC2 does not."""

from typing import Any

from moto.ec2.exceptions import DependencyViolationError
from moto.ec2.models.security_groups import SecurityGroupBackend

_delete = SecurityGroupBackend.delete_security_group


def patch() -> None:
    """Makes moto refuse it."""
    SecurityGroupBackend.delete_security_group = _deleted


# The message is EC2's: https://repost.aws/knowledge-center/troubleshoot-delete-vpc-sg
def _deleted(backend: Any, name: str | None = None, group_id: str | None = None) -> None:
    for interface in backend.enis.values():
        if group_id in {group.id for group in interface.group_set}:
            raise DependencyViolationError(f"resource {group_id} has a dependent object")
    _delete(backend, name, group_id)
