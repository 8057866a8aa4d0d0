"""What was answered by a stand-in, left out or taken another way, each told once with the result."""

from __future__ import annotations


class Notes:
    """Pairs of what the command asked for and what it got."""

    def __init__(self) -> None:
        """Nothing yet."""
        self.told: dict[tuple[str, str], int] = {}

    def tell(self, what: str, how: str) -> None:
        """Adds one, or counts it again."""
        self.told[what, how] = self.told.get((what, how), 0) + 1

    def lines(self) -> list[dict[str, object]]:
        """As the recording's `stand_in` lines have them."""
        return [dict(what=what, how=how, count=count) for (what, how), count in self.told.items()]
