"""From recordings at a few sizes to all sizes: each integer of each line as an exact polynomial."""

from __future__ import annotations

import gzip
import itertools
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from vramscope.record.writer import ADDRESS, text

Point = tuple[int, ...]
NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?")
REFERENCE = re.compile(r'"#(h|\d+):(\d+)((?::\d+)?)"')
# Declarations that canonical lines spell out, and lines that say nothing about the step.
SPELLED = ("fn", "meta", "end", "header", "assumed")


@dataclass
class Recorded:
    """A recording as canonical lines: layouts spelled out, numbers apart from the text around them."""

    point: Point
    header: dict[str, Any]
    texts: list[str] = field(default_factory=list)
    numbers: list[list[str]] = field(default_factory=list)
    end: dict[str, Any] = field(default_factory=dict)
    assumed: list[str] = field(default_factory=list)


def read(path: str, point: Point) -> Recorded:
    """The canonical lines of the recording at `path`, made at these sizes."""
    metas: dict[str, str] = {}
    names: dict[int, str] = {}
    found = Recorded(point, {})
    with gzip.open(path, "rt", encoding="utf-8") as file:
        for line in file:
            line = ADDRESS.sub("", line.rstrip("\n"))
            if line.startswith('{"t":"op"') or line.startswith('{"t":"param"'):
                line = REFERENCE.sub(lambda m: f'"#{m[1]}:{metas[m[2]]}{m[3]}"', line)
                line = re.sub(r'^\{"t":"op","f":(\d+)', lambda m: f'{{"t":"op","f":"{names[int(m[1])]}"', line)
                line = re.sub(r'"m":(\d+)', lambda m: f'"m":"{metas[m[1]]}"', line)
            else:
                known = json.loads(line)
                kind = known["t"]
                if kind == "meta":
                    metas[str(known["id"])] = known["dtype"] + text([known["shape"], known.get("strides")]).replace(
                        '"', ""
                    )
                elif kind == "fn":
                    names[known["id"]] = known["name"]
                elif kind == "header":
                    found.header = known
                elif kind == "end":
                    found.end = known
                elif kind == "assumed":
                    found.assumed.append(line)
                if kind in SPELLED:
                    continue
            found.texts.append(NUMBER.sub("\0", line))
            found.numbers.append(NUMBER.findall(line))
    return found


def monomials(varies: list[bool], degree: int) -> list[Point]:
    """Exponents of a basis: up to `degree` in the last variable, up to 1 in the others, none in what does not vary."""
    limits = [int(v) for v in varies[:-1]] + [degree * varies[-1]]
    return list(itertools.product(*(range(limit + 1) for limit in limits)))


def value(exponents: Point, point: Point) -> int:
    """A monomial at a point."""
    product = 1
    for base, power in zip(point, exponents, strict=True):
        product *= base**power
    return product


def solve(rows: list[list[int]], results: list[int]) -> list[Fraction] | None:
    """The exact solution of a square system, or None if it is singular."""
    n = len(rows)
    matrix = [[Fraction(x) for x in row] + [Fraction(y)] for row, y in zip(rows, results, strict=True)]
    for column in range(n):
        pivot = next((i for i in range(column, n) if matrix[i][column] != 0), None)
        if pivot is None:
            return None
        matrix[column], matrix[pivot] = matrix[pivot], matrix[column]
        lead = matrix[column][column]
        matrix[column] = [x / lead for x in matrix[column]]
        for i in range(n):
            if i != column and matrix[i][column] != 0:
                factor = matrix[i][column]
                matrix[i] = [x - factor * y for x, y in zip(matrix[i], matrix[column], strict=True)]
    return [row[-1] for row in matrix]


class Fit:
    """Polynomials through points, checked at points that were not used."""

    def __init__(self, points: list[Point]) -> None:
        """The highest degree that leaves a point to check; raises ValueError if there are too few points."""
        self.points = points
        varies = [len({p[k] for p in points}) > 1 for k in range(len(points[0]))]
        for degree in (2, 1):
            self.basis = monomials(varies, degree)
            self.chosen = self._independent()
            if len(self.chosen) == len(self.basis) and len(points) > len(self.basis):
                break
        else:
            raise ValueError("too few sizes with the same structure for a polynomial and one size to check it")
        self.checks = [i for i in range(len(points)) if i not in self.chosen]
        self.known: dict[tuple[int, ...], list[Fraction] | None] = {}

    def _independent(self) -> list[int]:
        """Points that determine the basis, the first that do."""
        rows: list[list[Fraction]] = []
        chosen: list[int] = []
        for i, point in enumerate(self.points):
            row = [Fraction(value(m, point)) for m in self.basis]
            for other in rows:
                lead = next(k for k, x in enumerate(other) if x != 0)
                if row[lead] != 0:
                    factor = row[lead] / other[lead]
                    row = [x - factor * y for x, y in zip(row, other, strict=True)]
            if any(row):
                rows.append(row)
                chosen.append(i)
        return chosen

    def polynomial(self, results: tuple[int, ...]) -> list[Fraction] | None:
        """Coefficients that give these results at all points, or None."""
        if results not in self.known:
            system = [[value(m, self.points[i]) for m in self.basis] for i in self.chosen]
            found = solve(system, [results[i] for i in self.chosen])
            if found is not None and any(self.at(found, self.points[i]) != results[i] for i in self.checks):
                found = None
            self.known[results] = found
        return self.known[results]

    def at(self, coefficients: list[Fraction], point: Point) -> Fraction:
        """A polynomial at a point."""
        return sum((c * value(m, point) for c, m in zip(coefficients, self.basis, strict=True)), Fraction(0))


def groups(recordings: list[Recorded]) -> list[list[Recorded]]:
    """Recordings of one structure together, the largest group first."""
    by_structure: dict[int, list[Recorded]] = {}
    for r in recordings:
        by_structure.setdefault(hash(tuple(r.texts)), []).append(r)
    return sorted(by_structure.values(), key=len, reverse=True)


def parametric(group: list[Recorded], fit: Fit, table: dict[tuple[str, ...], int]) -> Iterator[str]:
    """Lines of the first recording with `$k` for each integer that follows polynomial `k`.

    Raises ValueError at the first integer that follows none.
    """
    for i, around in enumerate(group[0].texts):
        columns = list(zip(*(r.numbers[i] for r in group), strict=True))
        pieces = around.split("\0")
        line = pieces[0]
        for column, piece in zip(columns, pieces[1:], strict=True):
            line += _number(column, fit, table, around) + piece
        yield line


def _number(column: tuple[str, ...], fit: Fit, table: dict[tuple[str, ...], int], around: str) -> str:
    """A number that is the same everywhere, or a reference to its polynomial."""
    if all(x == column[0] for x in column) or any(not x.lstrip("-").isdigit() for x in column):
        return column[0]
    found = fit.polynomial(tuple(map(int, column)))
    if found is None:
        raise ValueError(f"{', '.join(column)} at sizes {fit.points} is no polynomial, in {around[:80]!r}")
    return f"${table.setdefault(tuple(map(str, found)), len(table))}"


def write(path: str, names: list[str], recordings: list[Recorded]) -> dict[str, Any]:
    """Writes what holds at all sizes of each structure; returns what was found, for people."""
    report: dict[str, Any] = {"structures": [], "lone": []}
    with gzip.open(path, "wt", encoding="utf-8", compresslevel=6) as file:
        head = {k: v for k, v in recordings[0].header.items() if k not in ("t", "format", "version")}
        head = {"t": "header", "format": "vramscope-sizes", "version": 1, "sizes": names, **head}
        file.write(text(head) + "\n")
        for group in groups(recordings):
            points = [r.point for r in group]
            try:
                fit = Fit(points)
                table: dict[tuple[str, ...], int] = {}
                lines = list(parametric(group, fit, table))
            except ValueError as e:
                report["lone"].append({"points": points, "reason": str(e)})
                continue
            ranges = {n: [min(p[k] for p in points), max(p[k] for p in points)] for k, n in enumerate(names)}
            structure = {"t": "structure", "ranges": ranges, "points": points, "basis": fit.basis}
            structure["polynomials"] = [list(c) for c in table]
            structure["checked"] = [points[i] for i in fit.checks]
            structure["lines"] = len(lines)
            file.write(text(structure) + "\n")
            file.writelines(line + "\n" for line in lines)
            file.writelines(line + "\n" for line in group[0].assumed)
            report["structures"].append({"ranges": ranges, "polynomials": len(table), "checked": structure["checked"]})
        file.write('{"t":"end"}\n')
    return report
