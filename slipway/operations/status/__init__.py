"""What an endpoint really serves, beside its stack and its files: `slipway status`.

- `report.py`: reads everything, and tells problems from remarks.
- `differences.py`: compares the live settings with the plan, field by field.
- `component.py`: the copies of an endpoint that scales to zero.
- `rollback_causes.py`: the alarms that undid a rollout.
- `log_lines.py`: the last lines of the container's log.
"""

from slipway.operations.status.report import Status as Status
from slipway.operations.status.report import find_status as find_status
