"""What is timed, how often, in which order."""

from collections import Counter

from benchmarks.control_plane.design import COMMANDS, GOAL, Cell, Design, Form

DESIGN = Design(sizes=(1, 10, 500), trials=5, stated_trials=3, seed=1)


def test_commands_are_what_a_user_types():
    assert [command.shown for command in COMMANDS] == [
        "cdk deploy NAME -c models=NAME",
        "cdk diff NAME -c models=NAME",
        "cdk synth NAME -c models=NAME",
        "slipway plan NAME",
        "slipway validate NAME",
        "slipway validate",
        "cdk deploy NAME",
        "cdk diff NAME",
        "cdk synth NAME",
    ]
    assert len({command.key for command in COMMANDS}) == len(COMMANDS)
    selected = [command for command in COMMANDS if command.form is Form.SELECTED]
    assert all("NAME" in command.shown for command in selected)


def test_a_command_line_names_the_model_everywhere():
    deploy = GOAL.command
    assert deploy.line("tiny") == (
        "cdk", "deploy", "tiny", "-c", "models=tiny", "--require-approval", "never",
    )  # fmt: skip


def test_every_cell_has_its_number_of_trials_and_at_most_one_a_round():
    rounds = DESIGN.rounds()
    counts = Counter(cell for cells in rounds for cell in cells)
    assert counts == {
        Cell(command, size): 3 if command.stated_only else 5
        for command in COMMANDS
        for size in (1, 10, 500)
    }
    for cells in rounds:
        assert len(set(cells)) == len(cells)


def test_fewer_trials_are_spread_over_the_run():
    stated = [
        number
        for number, cells in enumerate(DESIGN.rounds())
        if any(cell.command.stated_only for cell in cells)
    ]
    assert stated == [0, 2, 4]
    once = Design(sizes=(1,), trials=4, stated_trials=1, seed=1).rounds()
    assert [any(c.command.stated_only for c in cells) for cells in once] == [True] + [False] * 3


def test_the_order_is_random_in_each_round_and_the_seeds():
    rounds = DESIGN.rounds()
    assert rounds == DESIGN.rounds()
    assert rounds != Design(sizes=(1, 10, 500), trials=5, stated_trials=3, seed=2).rounds()
    # The same cells in these two rounds, and in another order.
    assert set(rounds[0]) == set(rounds[2])
    assert rounds[0] != rounds[2]
