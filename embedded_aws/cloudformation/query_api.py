"""The read-only operations: stacks, events, resources, templates and exports."""

from typing import Any

from slipway.embedded_aws.api import Answer, ApiError, Caller, Parameters
from slipway.embedded_aws.cloudformation.document import invalid
from slipway.embedded_aws.cloudformation.request_reader import IAM_TYPES, read_template
from slipway.embedded_aws.cloudformation.stack_api import Api
from slipway.embedded_aws.cloudformation.template import Template
from slipway.embedded_aws.cloudformation.views import export_view, page, resource_view, stack_view

_NO_ID = "Stack with id {name} does not exist"
# The CDK CLI asks for a stack's status every five seconds, and would wait most of them in vain for
# an operation that takes one. Its question is answered when the operation is over.
_CDK_CLI = "aws-cdk/"
# After that time the CLI is told that the operation still goes on.
_HELD_SECONDS = 20.0


class QueryApi(Api):
    """Shows stacks and their contents."""

    def describe_stacks(self, caller: Caller, parameters: Parameters) -> Answer:
        if "StackName" in parameters:
            stack = self.find_stack(caller, parameters, _NO_ID)
            if _CDK_CLI in caller.program:
                stack.wait_until_settled(_HELD_SECONDS)
                # Its name may belong to no stack any more.
                stack = self.find_stack(caller, parameters, _NO_ID)
            return {"Stacks": [stack_view(stack)]}
        live = [s for s in self.context.store.all(caller.region) if s.status != "DELETE_COMPLETE"]
        return page("Stacks", live, parameters, stack_view)

    def list_stacks(self, caller: Caller, parameters: Parameters) -> Answer:
        wanted = parameters.get("StackStatusFilter")
        stacks = self.context.store.all(caller.region)
        listed = [stack for stack in stacks if not wanted or stack.status in wanted]
        return page("StackSummaries", listed, parameters, stack_view)

    def describe_stack_events(self, caller: Caller, parameters: Parameters) -> Answer:
        """Handles DescribeStackEvents: newest first."""
        stack = self.find_stack(caller, parameters)
        return page("StackEvents", stack.events[::-1], parameters)

    def describe_events(self, caller: Caller, parameters: Parameters) -> Answer:
        """Handles DescribeEvents, with the same events; change sets have no events here."""
        operation = parameters.get("OperationId")
        if "ChangeSetName" in parameters or not (operation or "StackName" in parameters):
            return {"OperationEvents": []}
        stacks = self.context.store.all(caller.region)
        if "StackName" in parameters:
            stacks = [self.find_stack(caller, parameters)]
        only_failed = parameters.get("Filters", {}).get("FailedEvents", False)
        selected = [
            event
            for stack in stacks
            for event in stack.events[::-1]
            if operation in (None, event["OperationId"])
            and (not only_failed or event["ResourceStatus"].endswith("_FAILED"))
        ]
        return page("OperationEvents", selected, parameters)

    def list_stack_resources(self, caller: Caller, parameters: Parameters) -> Answer:
        stack = self.find_stack(caller, parameters, _NO_ID)
        resources = [resource_view(stack, each) for each in list(stack.resources.values())]
        return page("StackResourceSummaries", resources, parameters)

    def describe_stack_resources(self, caller: Caller, parameters: Parameters) -> Answer:
        """Handles DescribeStackResources, by stack or by physical id."""
        wanted = parameters.get("PhysicalResourceId")
        if "StackName" in parameters:
            stacks = [self.find_stack(caller, parameters, _NO_ID)]
        elif wanted is not None:
            stacks = [
                stack
                for stack in self.context.store.all(caller.region)
                if any(item.physical_id == wanted for item in list(stack.resources.values()))
            ]
            if not stacks:
                raise invalid(f"Stack for {wanted} does not exist")
        else:
            raise invalid("StackName or PhysicalResourceId must be specified")
        logical_id = parameters.get("LogicalResourceId")
        return {
            "StackResources": [
                resource_view(stack, resource)
                for stack in stacks
                for resource in list(stack.resources.values())
                if logical_id in (None, resource.logical_id)
            ]
        }

    def describe_stack_resource(self, caller: Caller, parameters: Parameters) -> Answer:
        stack = self.find_stack(caller, parameters)
        logical_id = parameters["LogicalResourceId"]
        resource = stack.resources.get(logical_id)
        if resource is None:
            raise invalid(f"Resource {logical_id} does not exist for stack {stack.name}")
        return {"StackResourceDetail": resource_view(stack, resource)}

    def get_template(self, caller: Caller, parameters: Parameters) -> Answer:
        """Handles GetTemplate, of a stack or of one of its change sets."""
        stack = self.find_stack(caller, parameters, _NO_ID)
        desired = stack.desired
        wanted = parameters.get("ChangeSetName")
        if wanted is not None:
            found = stack.find_change_set(wanted)
            if found is None:
                raise ApiError("ChangeSetNotFound", f"ChangeSet [{wanted}] does not exist")
            desired = found.desired
        # A stack under review has no template yet.
        text = desired.template.text if desired else ""
        return {"TemplateBody": text, "StagesAvailable": ["Original", "Processed"]}

    def get_template_summary(self, caller: Caller, parameters: Parameters) -> Answer:
        """Handles GetTemplateSummary, of a stack or of a template that was never deployed."""
        if "StackName" in parameters:
            stack = self.find_stack(caller, parameters, _NO_ID)
            if stack.desired is None:
                raise invalid(_NO_ID.format(name=stack.name))
            template = stack.desired.template
        else:
            template = read_template(self.context, caller, parameters, None)
        return {
            **_described(template),
            "ResourceTypes": sorted({item.type for item in template.resources.values()}),
            "ResourceIdentifierSummaries": [],
            "DeclaredTransforms": [],
        }

    def validate_template(self, caller: Caller, parameters: Parameters) -> Answer:
        template = read_template(self.context, caller, parameters, None)
        if unknown := self.context.registry.unknown_types(template):
            raise invalid(
                f"Template format error: Unrecognized resource types: [{', '.join(unknown)}]"
            )
        return _described(template)

    def list_exports(self, caller: Caller, parameters: Parameters) -> Answer:
        exports = list(self.context.store.exports(caller.region))
        return page("Exports", exports, parameters, export_view)

    def list_imports(self, caller: Caller, parameters: Parameters) -> Answer:
        name = parameters["ExportName"]
        importers = self.context.store.importers(caller.region, name)
        if not importers:
            raise invalid(f"Export '{name}' is not imported by any stack.")
        return page("Imports", importers, parameters)


def _described(template: Template) -> dict[str, Any]:
    iam = any(item.type in IAM_TYPES for item in template.resources.values())
    needed = {
        "Capabilities": ["CAPABILITY_NAMED_IAM"],
        "CapabilitiesReason": "The following resource(s) require capabilities: [IAM resources]",
    }
    return {
        "Parameters": [
            {
                "ParameterKey": name,
                "ParameterType": body["Type"],
                "DefaultValue": str(body["Default"]) if "Default" in body else None,
                "NoEcho": str(body.get("NoEcho", False)).lower() == "true",
                "Description": body.get("Description"),
            }
            for name, body in template.parameters.items()
        ],
        "Description": template.description,
        **(needed if iam else {}),
    }
