"""The public API for CDK apps: an app with a project's models, and constructs beside them.

Names of `__all__` follow semantic versioning. Everything else of Slipway may change at any time,
except `slipway.policies`.
"""

from slipway.cdk.app import App as App
from slipway.errors import UserError as UserError

__all__ = ["App", "UserError"]
