"""`python -m containers.neuron compile`: a checkpoint becomes a model directory.

Two processes, see `containers.jobs` and `containers.encoders.compile`. `command` is the program: it
checks the job's input and passes the worker an order (`job`); it imports no framework. `worker` is
its child, in the Python that has the framework. It loads the model, compiles a graph for each
bucket (`compilers`), checks what can be checked and writes neuron.json.

AWS's image for inf1 has Python 3.10, PyTorch 1.13 and a transformers that still runs on it. The
image for inf2 and trn1 has newer versions of all three. `worker` and its imports therefore keep to
Python 3.10 and to the interfaces that transformers 4.40 and 5 share.

A graph for Neuron is compiled on any processor, but runs only on Neuron devices. **Nothing was
compiled for a device so far, and no compiler of AWS's was at hand**. The calls follow AWS's
documentation, and run against stand-ins of torch_neuron and torch_neuronx.
"""
