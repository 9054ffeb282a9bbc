"""Alarms: what they watch, whom they tell, and what they undo."""

from tools.pictures.kit import Arrow, Box, Diagram

PICTURES = [
    Diagram(
        name="concept-alarms",
        title="The alarms of a variant",
        description=(
            "Requests feed alarms on failed and late answers. Machines feed alarms on full memory "
            "and full disks. Every alarm writes to the environment's topic, which tells its "
            "people. The alarms that the section rollout names also undo an update while "
            "SageMaker watches it."
        ),
        columns=(160, 190, 190),
        column_gap=(60, 84),
        row_gap=36,
        boxes=[
            Box("requests", (0, 0), "Requests", "Data in minutes with requests. None: `OK`."),
            Box(
                "alarms",
                (1, 0),
                "Alarms of a variant",
                "On requests: failed answers, late answers.\n\n"
                "On machines: full memory, full disks.",
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
            Arrow("requests", "alarms"),
            Arrow("machines", "alarms"),
            Arrow("alarms", "topic", "all write"),
            Arrow("alarms", "rollout", "some undo", tone="accent"),
        ],
    )
]
