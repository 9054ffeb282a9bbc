"""CloudFormation: stacks and change sets, executed in the background with events and rollback.

The stages, each of which uses only the stage before it:

- `document` and `template`: text to a checked `Template`;
- `parameters`, `intrinsics` and `desired`: a template with values to a `Desired` state;
- `changes`: the differences between a stack and its desired state (a change set);
- `engine`: makes the change, resource by resource, through `resources`, or undoes it;
- `service`: the API in front of it; `views` writes its answers.

Only `resources` talks to other services, and only through their APIs.
"""
