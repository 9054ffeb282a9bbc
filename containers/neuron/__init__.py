"""The Neuron family: BERT-like encoders on AWS Inferentia and Trainium, or on a CPU.

There are two kinds of process. The program speaks HTTP, turns texts into token ids and the model's
outputs into answers (`containers.encoders`), and watches over the workers (`workers`). A worker
(`worker`, `runtimes`) holds one model on its own NeuronCores and only computes. AWS's last image
for inf1 has Python 3.10, so a worker may run in another Python than the program. The modules that a
worker imports therefore keep to Python 3.10, NumPy and the framework.

`compile` is the other command: a training job that turns a checkpoint into the model directory that
the workers serve.

No line of this has run on Neuron devices. It runs against stand-ins that enforce what the runtime
is documented to do, and on the CPU with ONNX Runtime.
"""
