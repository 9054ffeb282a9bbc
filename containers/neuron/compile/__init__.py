"""`python -m containers.neuron compile`: a checkpoint becomes a model directory.

Two processes, see `containers.jobs`. `command` is the program: it checks what the job was given
(`job`, `checkpoint`, `sentence_modules`) and hands the worker an `order`; it takes no framework.
`worker` is its child, in the Python that has the framework: it loads the model (`model`), compiles
a graph for each bucket (`compilers`, `onnx_graph`), checks what can be checked (`parity`) and
writes neuron.json. `modules` is what every target compiles.

AWS's image for inf1 has Python 3.10, PyTorch 1.13 and what of transformers still runs on it, the
one for inf2 and trn1 newer ones of all three: `worker`, and what it imports, keeps to Python 3.10
and to what transformers 4.40 and 5 have both.

A graph for Neuron is compiled on any processor and runs on its devices alone. **Nothing was
compiled for a device so far, and no compiler of AWS's was at hand**: the calls follow AWS's
documentation, and run against stand-ins of torch_neuron and torch_neuronx.
"""
