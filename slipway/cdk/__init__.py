"""The public API for CDK apps: an app with a project's models, and constructs beside them.

Names of `__all__` follow semantic versioning. Everything else of Slipway may change at any time,
except `slipway.policies` and `slipway.families`.
"""

import sys

from slipway.errors import UserError as UserError
from slipway.extras import require_node

# Before aws_cdk is imported, which starts Node.
try:
    require_node()
except UserError as error:
    sys.exit(str(error))

from slipway.cdk.app import App as App
from slipway.cdk.endpoint import Endpoint as Endpoint
from slipway.cdk.models import Model as Model

__all__ = ["App", "Endpoint", "Model", "UserError"]
