"""CloudFormation: stacks and change sets, executed in the background with events and rollback.

A request to deploy a stack passes through these modules in this order:

1. `request_reader` turns the request into a desired state, with the next two stages:
2. `document` and `template` read the text into a checked `Template`. `graph` orders its resources.
3. `desired_state` is the template with its values. `parameters` and `intrinsics` compute them, and
   `lookups` reads values from outside the stack.
4. `change_plan` lists the differences between the stack and its desired state, which a change set
   shows, and finds resources to import.
5. `stack_operations` starts a thread for the operation, and may end the operation early.
6. `stack_deployment` decides which resource is created, changed or deleted next. After a failure,
   `stack_rollback` undoes the deployment; it also deletes stacks.
7. `resource_steps` creates, changes or deletes one resource and records its events.
8. `resources` has a handler for each type, which calls the API of the resource's service.

`stack` and `stack_contents` hold the state. `stack_api`, `change_set_api` and `query_api` answer
requests, in the form that `views` gives the answers, and `service` joins them.
"""
