"""Patches of moto, where it differs from AWS in what stacks and endpoints need.

Each module replaces methods of moto's classes in the whole process. Its docstring says which
behaviour it replaces, and why:

- `buckets`: moto is stricter than S3 about bucket policies and access logs.
- `copied_objects`: moto ignores a condition of copies, and answers no hash of a copied part.
- `scalable_targets`: moto is laxer than Application Auto Scaling, and makes fewer alarms.
- `security_groups`: moto deletes a security group that is in use.
"""

from slipway.embedded_aws.moto_patches import (
    buckets,
    copied_objects,
    scalable_targets,
    security_groups,
)


def patch_moto() -> None:
    """Applies every patch; further calls do nothing."""
    for module in (buckets, copied_objects, scalable_targets, security_groups):
        module.patch()
