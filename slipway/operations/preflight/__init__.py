"""What a deploy needs in the account, checked before CloudFormation finds it missing.

Each check yields a line for what it found in order, and a problem for what is missing or wrong.
`account.py` has all checks of a plan.
"""

from slipway.operations.preflight.account import notes as notes
from slipway.operations.preflight.account import preflight as preflight
from slipway.operations.preflight.live import compare_commits as compare_commits
