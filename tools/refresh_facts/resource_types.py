"""Writes the table of resource types: `python -m tools.refresh_facts.resource_types`.

The embedded AWS reads the required and the create-only properties of its resource types from
slipway/facts/resource_types.json. cfn-lint ships AWS's provider schemas.
"""

from collections.abc import Mapping
from typing import Any

from cfnlint.schema.manager import PROVIDER_SCHEMA_MANAGER

from slipway.embedded_aws.cloudformation.resources.catalog import own_handlers
from tools.refresh_facts.tables import FACTS, package_version, run

TABLE = FACTS / "resource_types.json"
_REGION = "us-east-1"


def make() -> Mapping[str, Any]:
    types = {}
    for name in sorted(handler.type_name for handler in own_handlers()):
        schema = PROVIDER_SCHEMA_MANAGER.get_resource_schema(_REGION, name).schema
        # A pointer to a nested property is longer than /properties/NAME.
        create_only = [pointer.split("/")[2:] for pointer in schema.get("createOnlyProperties", [])]
        types[name] = {
            "required": sorted(schema.get("required", [])),
            "create_only": sorted(path[0] for path in create_only if len(path) == 1),
        }
    source = (
        f"CloudFormation provider schemas of {_REGION} as shipped with cfn-lint "
        f"{package_version('cfn-lint')}: required and top-level createOnlyProperties"
    )
    return {"sources": [source], "types": types}


if __name__ == "__main__":
    raise SystemExit(run(TABLE, make, levels=3))
