"""Artifact and lock: files lie under their hash, and a committed file names the hash."""

from tools.pictures.kit import Arrow, Box, Diagram, Group, Way

PICTURES = [
    Diagram(
        name="concept-artifact-and-lock",
        title="Artifacts and the lock file",
        description=(
            "slipway publish hashes the model's files, sends them to the artifact bucket under "
            "the hash, and writes the hash into the lock file. A reviewer sees the changed line. "
            "cdk deploy makes the endpoint load the artifact that the lock names. Older artifacts "
            "stay in the bucket, so a reverted lock file names one of them again."
        ),
        columns=(150, 190, 190),
        column_gap=(52, 92),
        row_gap=58,
        boxes=[
            Box("files", (0, 0), "Model files", "A folder, the Hub, or S3."),
            Box("publish", (1, 0), "slipway publish", "Hashes every file, then all of them."),
            Box("new", (2, 0), "This week's files", "`artifacts/7be2.../`"),
            Box("endpoint", (0, 1), "Endpoint", "Loads the artifact of the lock."),
            Box(
                "lock",
                (1, 1),
                "Lock file, in git",
                "One line names the digest. A reviewer reads it.",
                kind="accent",
            ),
            Box("old", (2, 1), "Last week's files", "`artifacts/f64b.../`\nThey stay."),
        ],
        arrows=[
            Arrow("files", "publish"),
            Arrow("publish", "new", "sends"),
            Arrow("publish", "lock", "writes", tone="accent"),
            Arrow("lock", "endpoint", "cdk\ndeploy", tone="accent"),
            Arrow(
                "lock",
                "new",
                "names",
                tone="accent",
                way=Way(leave="right", enter="left", leave_shift=-18, enter_shift=16, bend=22),
                label_on=1,
            ),
            Arrow("lock", "old", "names after\ngit revert", dashed=True, label_side="below"),
        ],
        groups=[Group("Artifact bucket", ("new", "old"))],
    )
]
