"""The Lambda function that stops the builds of a project before the project is deleted.

CodeBuild lets a build go on when its project is deleted, and the build would be billed until its
time limit.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from .answers import Answer, Client, Event, Outcome, Wait, respond, run

_IN_PROGRESS = "IN_PROGRESS"


def handle(event: Event, client: Client, answer: Answer, wait: Wait) -> None:
    """Handles a request of CloudFormation and answers it."""

    def stop() -> Outcome:
        if event["RequestType"] == "Delete":
            _stop_builds(event["ResourceProperties"]["ProjectName"], client("codebuild"))
        return Outcome("No build runs.")

    respond(event, answer, "remote-publishing", stop, wait)


def _stop_builds(project: str, codebuild: Any) -> None:
    """Stops every build of a project that runs or waits.

    The newest hundred are enough: builds end within the time limit, a day and a half at most.
    """
    identifiers = codebuild.list_builds_for_project(projectName=project)["ids"]
    if not identifiers:
        return
    for build in codebuild.batch_get_builds(ids=identifiers)["builds"]:
        if build["buildStatus"] == _IN_PROGRESS:
            codebuild.stop_build(id=build["id"])


handler = partial(run, handle)
