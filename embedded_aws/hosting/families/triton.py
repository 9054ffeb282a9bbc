"""Triton: no program stands for AWS's image, so such an endpoint fails with a reason."""

from collections.abc import Mapping

from embedded_aws.hosting.families.program import ContainerProgram

PROGRAMS: Mapping[str, ContainerProgram] = {}
