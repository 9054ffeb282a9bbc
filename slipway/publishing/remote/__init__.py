"""Publishing in a build of the account, next to S3.

`publish` is the command's side: it sends a source, starts or joins a build and takes its result.
`source` makes the source: Slipway as a wheel, and the project's files. `builds` talks to CodeBuild.
`result` is what the build reports; `slipway.cli.remote_build` is the build's side.
"""
