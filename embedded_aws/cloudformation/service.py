"""CloudFormation's API."""

from collections.abc import Collection

from botocore import xform_name
from moto.core.config import default_user_config
from moto.core.utils import get_service_model

from slipway.embedded_aws.api import Operation, ServiceApi
from slipway.embedded_aws.clients import LoopbackClients
from slipway.embedded_aws.cloudformation.change_set_api import ChangeSetApi
from slipway.embedded_aws.cloudformation.query_api import QueryApi
from slipway.embedded_aws.cloudformation.resources.catalog import ResourceRegistry
from slipway.embedded_aws.cloudformation.stack import OperationContext, StackStore
from slipway.embedded_aws.cloudformation.stack_api import StackApi
from slipway.embedded_aws.cloudformation.stack_operations import StackOperations


class CloudFormation:
    """CloudFormation of the embedded AWS, whose `api` is the WSGI application of its requests.

    `recorded` are patterns of further resource types, which are recorded without effect.
    """

    def __init__(self, clients: LoopbackClients, recorded: Collection[str] = ()) -> None:
        # Bootstrap's roles attach AWS's managed policies, which moto has only if they are loaded.
        default_user_config["iam"]["load_aws_managed_policies"] = True
        context = OperationContext(clients, ResourceRegistry(recorded), StackStore())
        self._stack_operations = StackOperations(context)
        parts = [
            each(context, self._stack_operations) for each in (StackApi, ChangeSetApi, QueryApi)
        ]
        operations: dict[str, Operation] = {
            name: getattr(each, xform_name(name))
            for name in get_service_model("cloudformation").operation_names
            for each in parts
            if hasattr(each, xform_name(name))
        }
        self.api = ServiceApi("cloudformation", operations, validation_code="ValidationError")

    def close(self) -> None:
        self._stack_operations.close()
