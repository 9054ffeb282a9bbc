"""The embedded AWS: real tools, one process, and the container's own program."""

from tools.pictures.kit import Arrow, Box, Diagram, Group, Way

PICTURES = [
    Diagram(
        name="concept-embedded-aws",
        title="The embedded AWS",
        description=(
            "The real CDK CLI, AWS CLI, boto3 and s5cmd talk to one process on your machine. Its "
            "CloudFormation creates resources through its SageMaker hosting and its other "
            "services. Hosting starts the container's own program with the files from the "
            "emulator's S3, and passes requests on to it. Requests become metrics, and an alarm "
            "over them can undo an update."
        ),
        columns=(130, 158, 158, 128),
        column_gap=(44, 38, 52),
        row_gap=52,
        boxes=[
            Box("cdk", (0, 0), "CDK CLI", "The same templates as in AWS."),
            Box("cloudformation", (1, 0), "CloudFormation", "Creates, updates, rolls back."),
            Box("hosting", (2, 0), "SageMaker", "Starts, updates and answers for endpoints."),
            Box(
                "program",
                (3, 0),
                "Container",
                "Its own program, on the CPU.",
                kind="accent",
            ),
            Box("others", (0, 1), "boto3, s5cmd, AWS CLI", "Your own code, too."),
            Box("services", (1, 1), "S3, IAM, KMS and more", "moto implements them."),
            Box("alarms", (2, 1), "CloudWatch", "Real metrics, and alarms that go off."),
        ],
        arrows=[
            Arrow("cdk", "cloudformation"),
            Arrow("cloudformation", "hosting"),
            Arrow("hosting", "program", "starts", tone="accent"),
            Arrow("others", "services"),
            Arrow("cloudformation", "services"),
            Arrow(
                "hosting",
                "alarms",
                "metrics",
                way=Way(leave="bottom", enter="top", leave_shift=-30, enter_shift=-30),
                label_side="left",
            ),
            Arrow(
                "alarms",
                "hosting",
                "undo",
                way=Way(leave="top", enter="bottom", leave_shift=30, enter_shift=30),
            ),
        ],
        groups=[
            Group(
                "One process, one port of your machine",
                ("cloudformation", "hosting", "services", "alarms"),
            )
        ],
    )
]
