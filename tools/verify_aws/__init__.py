"""`make verify-aws`: one small CPU endpoint's whole life in the caller's own account.

It shows what the embedded AWS cannot show. AWS accepts Slipway's stacks, starts the container on
the published files, publishes the metrics that the alarms watch, and removes it all again. It was
tested on the embedded AWS alone; Slipway's authors have never run it in AWS.

`checks` examines the account and refuses before anything is created. `life` then runs the commands
that a user would type, one stage each. Whatever happens, `removal` destroys both stacks and lists
the resources that are left, with the commands that remove them. `report` is the result for people
and programs.

With `--deep`, `deep` then asks the questions of `steps` about updates, and `answers` are lines for
docs/fidelity.md.

All names are its own (`project`), so that no other environment in the account is touched.
"""
