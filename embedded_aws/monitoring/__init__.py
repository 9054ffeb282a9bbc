"""CloudWatch alarms that evaluate.

moto keeps the alarms and the metric data and answers for them; this package makes the alarms live.
In the order in which an alarm passes through it:

- `api` refuses an alarm that could not be evaluated, before moto stores it;
- `definitions` says what an alarm compares, with `expressions` and `metric_math` for its formulas;
- `samples` turns metric data into data points;
- `evaluation` decides the state from the data points, and `reasons` says why: pure functions;
- `states` changes the state and `notifications` tells the alarm's topics;
- `evaluator` is the thread that does this on the clock.

docs/embedded-aws/monitoring.md lists what is evaluated and what is not.
"""
