"""The server's own work for a request, measured on real processes that compute nothing."""

import os

import pytest

from benchmarks.errors import BenchmarkError
from benchmarks.overhead import Program, measure_overhead, stub_server
from benchmarks.servers import server_variables

VARIABLES = server_variables(os.environ)


@pytest.mark.size("all")
def test_each_start_of_each_program_is_a_trial():
    said = []
    costs = measure_overhead(1, 0.05, seed=1, say=said.append)
    assert sorted((trial.round, trial.cell) for trial in costs) == [
        (1, program) for program in (Program.ECHO, Program.SLIPWAY)
    ]
    for trial in costs:
        assert trial.result.p50_seconds > 0
        assert trial.result.processor_seconds > 0
    assert len(said) == 2


def test_a_program_that_does_not_start_is_reported():
    with (
        pytest.raises(BenchmarkError, match="the server that computes nothing ended"),
        stub_server(Program.ECHO, VARIABLES | {"PYTHONHOME": "/nowhere"}),
    ):
        pass
