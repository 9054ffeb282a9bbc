"""What a deploy needs in the account, checked before CloudFormation finds it missing.

Each check yields a line for what it found in order, and a problem for what is missing or wrong.

- `account.py`: all checks of a plan, and those of the foundation and of artifacts.
- `images.py`: the image that the stack names, and the key of its repository.
- `execution_role.py`: the trust policy and the rights of an existing role.
- `places.py`: the buckets, topics and keys that the config names.
- `network.py`: subnets, security groups and routes.
- `stack.py`, `mode.py`, `scaling.py`, `quotas.py`: what is live beside the plan.
"""

from slipway.operations.preflight.account import notes as notes
from slipway.operations.preflight.account import preflight as preflight
from slipway.operations.preflight.commits import compare_commits as compare_commits
