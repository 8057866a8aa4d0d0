"""Errors of the recorder: what can't be recorded, and what to do."""

from __future__ import annotations


class RecordingError(Exception):
    """A recording that can't be made; its words go to the user."""


class CannotEmulate(RecordingError):
    """An operation whose outputs nobody can tell without running it."""

    def __init__(self, what: str, stack: str) -> None:
        """Names the operation and the lines of Python that called it."""
        self.what = what
        super().__init__(
            f"{what} has no meta kernel, so its outputs are unknown without a GPU. Register one with "
            f'torch.library.register_fake("{what.removesuffix(".default").replace(".", "::", 1)}").'
            + (f"\nCalled from:\n{stack}" if stack else "")
        )


class Finished(BaseException):
    """Raised inside the script when enough steps are recorded; no `except Exception` catches it."""
