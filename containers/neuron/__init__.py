"""The Neuron family: BERT-like encoders on AWS Inferentia and Trainium, or on a CPU.

Four tasks: question answering, sequence classification, token classification, embeddings.

Two kinds of process. The program is one: it speaks HTTP, turns texts into token ids (`requests`,
`tokenization`, `windows`) and what the model computes into answers (`answers`, `entities`), and
`workers` places and watches over the others. A worker (`worker`, `runtimes`) holds one model on
NeuronCores of its own and does nothing but compute. It may run in another Python than the program,
since AWS's last image for inf1 has Python 3.10: what a worker imports keeps to that version and
needs NumPy and the framework alone (`messages`, `manifest`, `pooling`).

`compile` is the other command: a training job makes of a checkpoint what they serve.

No line of this has run on Neuron devices. It runs against stand-ins
that enforce what the runtime is documented to do, and on the CPU with ONNX Runtime.
"""
