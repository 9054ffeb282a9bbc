"""What every family's training job has in common: SageMaker's side of it, and its two processes.

A job compiles in two processes. The program (`supervision`) checks what the job was given, starts a
child (`child`), and moves what that made into place; it imports nothing large. The child loads the
frameworks, and writes into its scratch directory only. So a stop or a lack of memory ends the child
at any point, in the middle of a call into a library too, and the program lives to say why and to
clear away what was half done.

`paths` and `hyperparameters` read what SageMaker tells a job, `checkpoint_files` checks a
checkpoint's files, `report` says how it goes. It runs as a SageMaker training job does, see
https://docs.aws.amazon.com/sagemaker/latest/dg/your-algorithms-training-algo-running-container.html

A child may run in an older Python than the program: `child` and `report`, and what they import,
keep to Python 3.10.
"""
