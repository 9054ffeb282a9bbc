"""Encoders such as BERT, for any family that serves them: from a request's body to its answer.

Four tasks: question answering, sequence classification, token classification, embeddings. The
families differ in what computes a batch, and in nothing that a client sees.

A predictor (`predictor`) turns texts into rows of token ids (`requests`, `tokenization`,
`windows`), rows into batches (`batches`), and the model's outputs into answers (`tasks`, `answers`,
`entities`, `outputs`). `manifest` describes the compiled graphs, and `model_directory` reads the
files beside them. `compile` has what the families' compile jobs share.

Neuron's workers may run in an older Python than the program: `manifest` and `outputs` keep to
Python 3.10 and NumPy.
"""
