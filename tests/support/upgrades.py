"""What an update from one template to another would replace, and a template to update to."""

import json
import re
from typing import Any

from slipway.facts.resource_types import provider_schemas

# Resource types whose replacement loses data, or makes them unavailable for a while.
KEPT_TYPES = (
    "AWS::ECR::Repository",
    "AWS::KMS::Key",
    "AWS::Logs::LogGroup",
    "AWS::S3::Bucket",
    "AWS::SageMaker::Endpoint",
    "AWS::SNS::Topic",
)


def kept(template: dict[str, Any]) -> dict[str, dict[str, Any]]:
    found = template["Resources"].items()
    return {name: resource for name, resource in found if resource["Type"] in KEPT_TYPES}


def replaced(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    """Returns why CloudFormation would replace or delete kept resources of the first template."""
    found = []
    for name, old in kept(before).items():
        new = after["Resources"].get(name)
        if new is None or new["Type"] != old["Type"]:
            found.append(f"{name} is gone")
            continue
        old_properties, new_properties = old.get("Properties", {}), new.get("Properties", {})
        found += [
            f"{name}: {each} changes"
            for each in provider_schemas()[old["Type"]]["create_only"]
            if old_properties.get(each) != new_properties.get(each)
        ]
    return found


def with_another_type(template: dict[str, Any]) -> dict[str, Any]:
    """Returns the template with what another instance type changes in it."""
    text = json.dumps(template).replace('"ml.g4dn.xlarge"', '"ml.g4dn.2xlarge"')
    text = re.sub(r"EndpointUpdateUndo\w+", "EndpointUpdateUndoOther", text)
    found: dict[str, Any] = json.loads(text)
    for name in list(found["Resources"]):
        resource = found["Resources"][name]
        if resource["Type"] == "AWS::ApplicationAutoScaling::ScalingPolicy":
            resource["Properties"]["PolicyName"] += "-other"
            found["Resources"][f"{name}Other"] = found["Resources"].pop(name)
    return found
