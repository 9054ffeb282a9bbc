"""The words of the commands. The command line lies above this package, and hands them down."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from slipway.operations.fleet import FleetRow
from slipway.operations.status import Status
from slipway.planning.consequences import Consequences
from slipway.planning.plan import DeploymentPlan
from slipway.planning.review import ModelReview

Row = tuple[str, str]


@dataclass(frozen=True)
class Wording:
    """What `slipway list`, `plan`, `status`, `review` and `logs` print: cells of columns, and rows.

    Verdicts of a status are each behind its word, such as `TROUBLE`. A status also takes why the
    files make no plan, and what a deploy would do. A log line becomes words.
    """

    fleet_head: Sequence[str]
    fleet_cells: Callable[[FleetRow], Sequence[str]]
    plan: Callable[[DeploymentPlan], Iterable[Row]]
    verdicts: Callable[[Status], Iterable[Row]]
    status: Callable[[Status, str | None, Consequences | None], Iterable[Row]]
    review: Callable[[ModelReview], Iterable[Row]]
    log_line: Callable[[str], str]
