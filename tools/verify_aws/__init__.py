"""`make verify-aws`: one small CPU endpoint's whole life in the caller's own account.

It shows what the embedded AWS cannot show. AWS accepts Slipway's stacks, starts the container on
the published files, publishes the metrics that the alarms watch, and removes it all again. It was
tested on the embedded AWS alone; Slipway's authors have never run it in AWS.

`checks` examines the account and refuses before anything is created. `life` then runs the commands
that a user would type, one stage each. `slipway status` tells whether the account has what the
files say. Whatever happens, `removal` destroys both stacks and lists the resources that are left,
with the commands that remove them. `report` is the result for people and programs.

With `--deep`, it then asks `questions` about updates that only an account can answer. A
question without an answer does not stop the next one. It fails if there is no answer, or if the
answer is not what Slipway relies on.

All names are its own (`project`), so that no other environment in the account is touched.
"""
