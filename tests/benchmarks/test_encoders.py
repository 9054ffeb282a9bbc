"""The benchmark of encoders: its order and its verdict. It measures real servers by hand only."""

from benchmarks.encoders import PROGRAMS, System, lines
from benchmarks.load import LoadResult
from benchmarks.neuron.design import SAMPLE
from benchmarks.trials import Trial


def test_a_verdict_compares_slipway_with_transformers():
    def load(seconds):
        return LoadResult(((seconds,),) * 16, (seconds,) * 16, (), 0.0, seconds)

    trials = [
        Trial(
            system, number, load(1.6 / {System.SLIPWAY: faster, System.INT8: 3.0}.get(system, 1.0))
        )
        for number, faster in enumerate((1.8, 2.2, 2.3), start=1)
        for system in System
    ]
    *rates, fp32, int8 = lines(SAMPLE, trials, seed=1)
    assert fp32.endswith("at least 2: met by the medians only")
    assert int8.endswith("at least 2: met")
    assert rates[0].startswith(
        "the sample, `transformers`, one request at a time: 10.00 requests/s"
    )
    assert len(rates) == len(PROGRAMS) == len(System)
