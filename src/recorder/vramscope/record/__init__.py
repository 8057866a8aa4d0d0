"""The recorder: PyTorch believes in a CUDA card that holds no data, and every operation is written down."""
