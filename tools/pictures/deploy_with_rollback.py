"""A deployment that an alarm watches: how it ends well, and how it is undone."""

from tools.pictures.kit.timeline import Bar, Event, Lane, Panel, Phase, Timeline

PICTURES = [
    Timeline(
        name="deploy-with-rollback",
        title="An update of an endpoint, with and without an alarm",
        description=(
            "The new fleet starts while the old fleet serves. When the new fleet is healthy, all "
            "requests move to it. For wait_seconds SageMaker watches the alarms. Without an alarm "
            "the old fleet stays for termination_wait_seconds, and then ends. If an alarm goes "
            "off, the requests move back to the old fleet, the new fleet is removed, and "
            "CloudFormation rolls the stack back."
        ),
        end=100,
        panels=[
            Panel(
                "No alarm goes off: the new fleet stays",
                lanes=[
                    Lane(
                        "Old fleet", [Bar(0, 26, "serves", "accent"), Bar(26, 84, "kept", "quiet")]
                    ),
                    Lane(
                        "New fleet",
                        [Bar(5, 26, "starts", "quiet"), Bar(26, 100, "serves", "accent")],
                    ),
                ],
                phases=[
                    Phase(5, 26, "health check"),
                    Phase(26, 54, "alarms are watched\n`wait_seconds`"),
                    Phase(54, 84, "old fleet waits\n`termination_wait_seconds`"),
                ],
                events=[
                    Event(5, "`cdk deploy`"),
                    Event(26, "requests move"),
                    Event(54, "watch ends"),
                    Event(84, "old fleet removed"),
                ],
            ),
            Panel(
                "An alarm goes off: the old fleet serves again",
                lanes=[
                    Lane(
                        "Old fleet",
                        [
                            Bar(0, 26, "serves", "accent"),
                            Bar(26, 43, "kept", "quiet"),
                            Bar(43, 100, "serves", "accent"),
                        ],
                    ),
                    Lane(
                        "New fleet",
                        [
                            Bar(5, 26, "starts", "quiet"),
                            Bar(26, 43, "serves", "accent"),
                            Bar(43, 54, "ends", "quiet"),
                        ],
                    ),
                ],
                events=[
                    Event(5, "`cdk deploy`"),
                    Event(26, "requests move"),
                    Event(43, "alarm: requests move back", tone="warn", anchor="start"),
                    Event(84, "stack is rolled back"),
                ],
            ),
        ],
        note=(
            "The fleet that answers the requests is coloured. A new fleet that fails its health "
            "check never gets a request: the update ends there, and the old fleet serves on."
        ),
    )
]
