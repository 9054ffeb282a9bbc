"""Images of the user's own: no program stands for any, so such an endpoint fails with a reason."""

from collections.abc import Mapping

from embedded_aws.hosting.families.program import ContainerProgram

PROGRAMS: Mapping[str, ContainerProgram] = {}
