"""CloudFormation's API."""

from collections.abc import Collection

from botocore import xform_name
from moto.core.config import default_user_config
from moto.core.utils import get_service_model

from slipway.embedded_aws.api import Operation, ServiceApi
from slipway.embedded_aws.clients import LoopbackClients
from slipway.embedded_aws.cloudformation.change_set_api import ChangeSetApi
from slipway.embedded_aws.cloudformation.query_api import QueryApi
from slipway.embedded_aws.cloudformation.request_reader import RequestReader
from slipway.embedded_aws.cloudformation.resources.catalog import ResourceRegistry
from slipway.embedded_aws.cloudformation.stack import StackStore
from slipway.embedded_aws.cloudformation.stack_api import StackApi
from slipway.embedded_aws.cloudformation.stack_operations import StackOperations


class CloudFormation:
    """CloudFormation of the embedded AWS.

    Args:
        recorded: patterns of further resource types, which are recorded without effect.

    Attributes:
        api: the WSGI application that answers CloudFormation's requests.
    """

    def __init__(self, clients: LoopbackClients, recorded: Collection[str] = ()) -> None:
        # Bootstrap's roles attach AWS's managed policies, which moto has only if they are loaded.
        default_user_config["iam"]["load_aws_managed_policies"] = True
        store = StackStore()
        registry = ResourceRegistry(recorded)
        self._stack_operations = StackOperations(clients, registry, store)
        reader = RequestReader(clients, registry, store)
        answering = (
            StackApi(store, self._stack_operations, reader),
            ChangeSetApi(store, self._stack_operations, reader),
            QueryApi(store, registry, reader),
        )
        operations: dict[str, Operation] = {
            name: getattr(each, xform_name(name))
            for name in get_service_model("cloudformation").operation_names
            for each in answering
            if hasattr(each, xform_name(name))
        }
        self.api = ServiceApi("cloudformation", operations, validation_code="ValidationError")

    def close(self) -> None:
        """Ends running deployments at their next step."""
        self._stack_operations.close()
