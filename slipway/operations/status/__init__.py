"""What an endpoint really serves, beside its stack and its files: `slipway status`.

- `report.py`: reads everything, and tells problems from remarks.
- `differences.py`: compares the live settings with the plan, field by field.
- `component.py`: the copies of an endpoint that scales to zero.
- `rollback_causes.py`: the alarms that undid a rollout.
- `log_lines.py`: the last lines of the container's log.
- `of_model.py`: the report beside a model's files.
"""

from slipway.operations.status.of_model import find_model_status as find_model_status
from slipway.operations.status.report import Status as Status
from slipway.operations.status.report import find_status as find_status
