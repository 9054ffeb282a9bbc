"""Values that a template may take from outside its stack."""

from collections.abc import Mapping

from slipway.embedded_aws.cloudformation.intrinsics import TemplateError
from slipway.embedded_aws.cloudformation.stack import OperationContext

# ssm:GetParameters takes ten names per call.
_NAMES_PER_CALL = 10


class ServerLookups:
    """Reads exports, outputs, the parameter store and the zones of this server."""

    def __init__(self, context: OperationContext, region: str) -> None:
        self._clients = context.clients
        self._store = context.store
        self._region = region

    def exported(self, name: str) -> str:
        for _, output in self._store.exports(self._region):
            if output.export_name == name:
                return output.value
        raise TemplateError(f"No export named {name} found.")

    def stack_output(self, stack: str, output: str, region: str | None) -> str:
        found = self._store.find(region or self._region, stack)
        if found is None or output not in found.outputs:
            raise TemplateError(f"Stack {stack} has no output {output}.")
        return found.outputs[output].value

    def dynamic(self, service: str, key: str) -> str:
        """Returns the value of `{{resolve:ssm:NAME}}`, with or without a version."""
        if service != "ssm":
            raise TemplateError(
                f"Template error: the embedded AWS does not resolve {{{{resolve:{service}:...}}}}; "
                "docs/embedded-aws.md lists what it does"
            )
        values = self.parameters([key])
        if key not in values:
            raise TemplateError(
                f"Unable to fetch parameters [{key}] from parameter store for this account."
            )
        return values[key]

    def parameters(self, names: list[str]) -> Mapping[str, str]:
        """Reads the parameter store; unknown names are left out."""
        client = self._clients.client("ssm", self._region)
        unique = list(dict.fromkeys(names))
        found: dict[str, str] = {}
        for start in range(0, len(unique), _NAMES_PER_CALL):
            answer = client.get_parameters(Names=unique[start : start + _NAMES_PER_CALL])
            found |= {
                item["Name"] + item.get("Selector", ""): item["Value"]
                for item in answer["Parameters"]
            }
        return found

    def availability_zones(self, region: str) -> list[str]:
        zones = self._clients.client("ec2", region).describe_availability_zones()
        return [zone["ZoneName"] for zone in zones["AvailabilityZones"]]
