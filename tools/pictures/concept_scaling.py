"""Scaling: a loop from the requests to the number of instances."""

from tools.pictures.kit import Arrow, Box, Diagram

PICTURES = [
    Diagram(
        name="concept-scaling",
        title="How a fleet follows its load",
        description=(
            "Clients send 1500 requests a minute to an endpoint with two instances. CloudWatch's "
            "metric says 750 for each instance. Application Auto Scaling compares it with the "
            "target of 600, and sets the count to three. Then each instance carries 500. A pause "
            "follows each change."
        ),
        columns=(140, 190, 190),
        column_gap=(74, 74),
        row_gap=62,
        boxes=[
            Box("clients", (0, 0), "Clients", "1,500 requests a minute"),
            Box("endpoint", (1, 0), "Endpoint", "2 instances, then 3"),
            Box("metric", (2, 0), "CloudWatch", "750 for each instance, which becomes 500"),
            Box(
                "count",
                (1, 1),
                "New count: 3",
                "Between the two bounds of the file. Then a pause.",
            ),
            Box(
                "target",
                (2, 1),
                "Target tracking",
                "Compares with your target, 600 a minute.",
                kind="accent",
            ),
        ],
        arrows=[
            Arrow("clients", "endpoint", "requests"),
            Arrow("endpoint", "metric", "count"),
            Arrow("metric", "target", "every minute"),
            Arrow("target", "count", "750 > 600", tone="accent"),
            Arrow("count", "endpoint", "adds one", tone="accent"),
        ],
    )
]
