"""Alarms: what they watch, whom they tell, and what they undo."""

from tools.pictures.kit import Arrow, Box, Diagram

PICTURES = [
    Diagram(
        name="concept-alarms",
        title="The seven alarms of a variant",
        description=(
            "Requests feed four alarms: server errors, model latency, overhead latency and client "
            "errors. Machines feed three: memory, disk and GPU memory. Every alarm writes to the "
            "environment's topic, which tells its people. The alarms that the section rollout "
            "names also undo an update while SageMaker watches it."
        ),
        columns=(160, 190, 190),
        column_gap=(60, 84),
        row_gap=36,
        boxes=[
            Box("requests", (0, 0), "Requests", "Data in minutes with requests. None: `OK`."),
            Box(
                "alarms",
                (1, 0),
                "Up to seven alarms",
                "Server errors, model latency, overhead latency, client errors.\n\n"
                "Memory, disk, GPU memory.",
                rows=2,
            ),
            Box("topic", (2, 0), "Topic", "Tells the people of the environment."),
            Box("machines", (0, 1), "Machines", "Data every minute. None: nobody watches."),
            Box(
                "rollout",
                (2, 1),
                "An update",
                "is undone by the alarms that `rollout` names.",
                kind="accent",
            ),
        ],
        arrows=[
            Arrow("requests", "alarms", "four"),
            Arrow("machines", "alarms", "three"),
            Arrow("alarms", "topic", "all write"),
            Arrow("alarms", "rollout", "some undo", tone="accent"),
        ],
    )
]
