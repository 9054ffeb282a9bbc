"""The questions of `--deep`, in the order in which they are asked."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Step:
    """One question.

    Args:
        name: of the stage.
        title: begins the answer's line.
        does: what the step does, said before the user is asked.
        minutes: estimate of its time in AWS.
        not_local: what the embedded AWS cannot show, a sentence.
        needs_network: whether it is asked only with a network.
    """

    name: str
    title: str
    does: str
    minutes: int
    not_local: str
    needs_network: bool = False


STEPS = (
    Step(
        "first log line",
        "First log line under the execution role",
        "reads the container's first log line",
        1,
        "The embedded AWS writes the log itself, and asks for no right.",
    ),
    Step(
        "change the type",
        "Instance type changed under autoscaling",
        "changes the instance type, which replaces the fleet",
        10,
        "The embedded AWS starts no instances, so that its time means nothing.",
    ),
    Step(
        "change the target",
        "Target value changed afterwards",
        "changes the target value of autoscaling",
        2,
        "The embedded AWS looks for policies as the provider's public schema says.",
    ),
    Step(
        "a broken container",
        "Type change with a container that cannot start",
        "changes the type again with a container that cannot start, which has to be undone",
        30,
        "The embedded AWS always gives a reason, so that its rollback is never silent.",
    ),
    Step(
        "only the rollout",
        "Change of `rollout` alone",
        "gives the endpoint a rollout with an alarm, and changes nothing else",
        15,
        "The embedded AWS moves real requests, and starts no instances.",
    ),
    Step(
        "only a tag",
        "Change of a tag alone",
        "adds a tag, and changes nothing else",
        2,
        "AWS's documents do not say what it does, so that the embedded AWS shows a guess.",
    ),
    Step(
        "an alarm",
        "Alarm set off during a rollout",
        "brings out a fleet whose requests all fail, so that the rollout's alarm has to undo it",
        25,
        "The embedded AWS chose the words of its reason itself.",
    ),
    # The last one of the first endpoint: its stack may end as UPDATE_ROLLBACK_FAILED.
    Step(
        "the target after it",
        "Target value changed after a type change was rolled back",
        "changes the target value of the policy that the first rollback put again",
        5,
        "The embedded AWS looks for policies as the provider's public schema says.",
    ),
    Step(
        "a failing request",
        "Failing request to an asynchronous endpoint",
        "deploys a second endpoint with a queue, and sends it a request that fails",
        15,
        "The embedded AWS chose the failure's text itself.",
    ),
    Step(
        "deletion in a VPC",
        "Network interfaces after DeleteEndpoint",
        "destroys the second endpoint, and waits for its network interfaces to go",
        20,
        "The embedded AWS deletes interfaces at once.",
        needs_network=True,
    ),
)


def minutes(steps: Sequence[Step] = STEPS) -> int:
    """Returns the estimated time of all steps together."""
    return sum(step.minutes for step in steps)


def announcement() -> list[str]:
    """Returns what the steps do and how long, as lines for the user."""
    first = f"DEEP=1 adds {len(STEPS)} steps, about {minutes()} minutes in AWS:"
    return [first, *(f"  - It {step.does} ({step.minutes} min)." for step in STEPS)]
