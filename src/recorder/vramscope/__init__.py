"""VRAMscope in Python: record a training step without a GPU."""

from vramscope.record.session import recording

__all__ = ["recording"]
__version__ = "0.1.0"
