"""What a fleet does under a traffic: queues, scaling and cost, before anything is deployed.

`traffic` has the requests, `queues` how long they wait, `scaling` how the fleet follows them, and
`run` joins the three. `search` compares settings. Nothing here reads an account or the clock.
"""
