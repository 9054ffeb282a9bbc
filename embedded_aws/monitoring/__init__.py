"""CloudWatch alarms that are evaluated.

moto stores the alarms and the metric data and answers requests for them; this package evaluates the
alarms. An alarm passes through it in this order:

- `api` refuses an alarm that cannot be evaluated, before moto stores it;
- `definitions` reads what an alarm compares, with `metric_math` for its formulas;
- `samples` turns metric data into data points;
- `evaluation` decides the state from the data points, and `reasons` explains it: pure functions;
- `states` changes the state and lists the changes, and `notifications` tells the alarm's topics;
- `evaluator` is the thread that does this on the clock.

`metric_data` answers GetMetricData.

docs/embedded-aws/services.md lists what is evaluated and what is not.
"""
