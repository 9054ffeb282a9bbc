"""CodeBuild's builds: the commands of a buildspec run as a process of this machine.

moto keeps the projects. `service` is the control plane of builds. `buildspec` reads what a project
is to run, and makes one shell program of it. `records` holds the state of a build, and `run` takes
a build from its source to its end. docs/embedded-aws/services.md lists what is emulated.
"""
