"""Earlier LMI images, and LMI's handler of Hugging Face Accelerate."""

ACCELERATE = {"entry_point": "djl_python.huggingface", "rolling_batch": "disable"}
FT_021 = ("djl-fastertransformer", "0.21.0")
FT_022 = ("djl-fastertransformer", "0.22.1")
DEEPSPEED_022 = ("djl-deepspeed", "0.22.1")
DEEPSPEED_023 = ("djl-deepspeed", "0.23.0")
LMI_029 = ("djl-lmi", "0.29.0")
LMI_030 = ("djl-lmi", "0.30.0")
LMI_032 = ("djl-lmi", "0.32.0")
READER = "djl_python.huggingface of djl-lmi 0.36.0"
