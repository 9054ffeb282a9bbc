"""Measures an endpoint under load: `slipway bench`, and the driver of the project's benchmarks.

- `connections.py`, `signed.py`: HTTP and signatures that cost little.
- `load.py`: the closed and the open loop; `arrivals.py`: when requests of the open loop are sent.
- `idle_server.py`, `self_test.py`: a server that does nothing, and what the driver reaches with it.
- `design.py`, `requests.py`: a design's file, the shipped designs, and the requests of a cell.
- `endpoint.py`, `run.py`: carry a design out; `answers.py`, `figures.py`, `estimates.py`: numbers.
- `results.py`, `report.py`, `plots.py`, `compare.py`: what is written, shown and compared.
"""
