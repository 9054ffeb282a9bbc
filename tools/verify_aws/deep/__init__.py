"""`make verify-aws DEEP=1`: asks the questions about updates that only an account can answer.

- `updates` asks about the endpoint that the run has deployed, and `queue` about a second one.
- `run` asks one question after the other. A question without an answer does not stop the next.
- `live` and `watch` look at the account after a command, and meanwhile.

A stage fails if there is no answer, or if the answer is not what Slipway relies on. The questions
are in `steps` beside this package, and `answers` writes the lines.
"""
