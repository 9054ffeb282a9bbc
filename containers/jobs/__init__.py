"""The parts that every family's training job shares: SageMaker's contract and the two processes.

A job compiles in two processes. The program (`supervision`) checks the job's input, starts a child
(`child`), and moves the child's output into place; it imports nothing large. The child loads the
frameworks and writes into its scratch directory only. A stop or a lack of memory can therefore end
the child at any point, even in the middle of a call into a library. The program survives to report
the reason and to remove partial output.

`paths` and `hyperparameters` read what SageMaker passes to a job, `checkpoint_files` checks a
checkpoint's files, `report` logs progress and failures. The child loads a checkpoint with
`pretrained` and writes graphs with `onnx_files`. A job runs as a SageMaker training job
does, see
https://docs.aws.amazon.com/sagemaker/latest/dg/your-algorithms-training-algo-running-container.html

A child may run in an older Python than the program: `child`, `report` and `pretrained`, and what
they import, keep to Python 3.10.
"""
