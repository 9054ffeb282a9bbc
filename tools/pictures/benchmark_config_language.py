"""What the first plan of a process costs, by config."""

from tools.pictures.kit.bars import Bars, Panel, Row
from tools.pictures.kit.results import results

_PLANS = [each for each in results("config-language")["measures"] if "first plan" in each["title"]]
_GOAL = 1000 * _PLANS[0]["goal"]

PICTURES = [
    Bars(
        name="benchmark-plans",
        title="The time of the first plan of a process, by config",
        description=f"Milliseconds, beside the goal of less than {_GOAL:g}.",
        panels=[
            Panel(
                "First plan of a process: less is better",
                "milliseconds",
                [
                    (
                        "",
                        [
                            Row(
                                each["title"].rsplit(": ", 1)[1],
                                1000 * each["median"],
                                f"{1000 * each['median']:.0f} ms",
                                1000 * each["lowest"],
                                1000 * each["highest"],
                                "accent",
                            )
                            for each in _PLANS
                        ],
                    )
                ],
                goal=_GOAL,
                goal_text=f"goal: under {_GOAL:g}",
                points=True,
            )
        ],
        label_width=160,
        value_width=64,
        note="Points are medians of 15 trials, and lines go from the lowest to the highest.",
    )
]
