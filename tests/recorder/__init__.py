"""Tests of the recorder: `python3 -m unittest discover -s tests/recorder -t .` with PyTorch and transformers there."""
