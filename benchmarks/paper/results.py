"""Measured values in a CSV file, kept row by row, so that an interrupted run goes on where it was."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

Value = str | int | float
Row = dict[str, str]


def text_of(value: Value) -> str:
    """How a value is written: floats with six significant digits."""
    return f"{value:.6g}" if isinstance(value, float) else str(value)


class Results:
    """Rows of a CSV file.

    Parameters
    ----------
    path:
        The file; made when the first row comes.
    keys:
        Columns that say what was measured; no two rows have the same.
    values:
        Columns of what came out.

    Raises
    ------
    ValueError
        The file has other columns, or a whole line is no row.
    """

    def __init__(self, path: Path, keys: Sequence[str], values: Sequence[str] = ("value",)) -> None:
        self.path = path
        self.keys = tuple(keys)
        self.columns = (*keys, *values)
        self._rows: dict[tuple[str, ...], Row] = {}
        if path.exists():
            self._read()

    def _read(self) -> None:
        # Bytes, for an interruption may have cut a character or a line in two.
        content = self.path.read_bytes()
        whole = content[: content.rfind(b"\n") + 1]
        if len(whole) < len(content):
            with self.path.open("r+b") as file:
                file.truncate(len(whole))
        lines = list(csv.reader(io.StringIO(whole.decode("utf-8"))))
        if lines and tuple(lines[0]) != self.columns:
            raise ValueError(
                f"{self.path}: expected the columns {','.join(self.columns)}, got {','.join(lines[0])}; "
                "move the file away to measure anew"
            )
        for number, line in enumerate(lines[1:], 2):
            if len(line) != len(self.columns):
                raise ValueError(f"{self.path}: line {number} has {len(line)} fields, not {len(self.columns)}")
            row = dict(zip(self.columns, line, strict=True))
            self._rows[self._key(row)] = row

    def _key(self, row: Mapping[str, Value]) -> tuple[str, ...]:
        return tuple(text_of(row[name]) for name in self.keys)

    @property
    def rows(self) -> list[Row]:
        """All rows, in the order of measurement."""
        return list(self._rows.values())

    def __contains__(self, key: Mapping[str, Value]) -> bool:
        return self._key(key) in self._rows

    def add(self, rows: Iterable[Mapping[str, Value]]) -> None:
        """Append rows to the file, those left out whose key is there already."""
        new = [{name: text_of(row[name]) for name in self.columns} for row in rows if row not in self]
        if not new:
            return
        self.path.parent.mkdir(parents=True, exist_ok=True)
        started = self.path.exists() and self.path.stat().st_size > 0
        with self.path.open("a", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, self.columns, lineterminator="\n")
            if not started:
                writer.writeheader()
            writer.writerows(new)
        self._rows.update({self._key(row): row for row in new})


def read_rows(path: Path) -> list[Row]:
    """Rows of a CSV file, none if there is no such file."""
    if not path.exists():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def grouped(rows: Iterable[Row], *columns: str, value: str = "value") -> dict[tuple[str, ...], list[float]]:
    """Values by the columns named, in order of appearance; empty values are left out."""
    groups: dict[tuple[str, ...], list[float]] = {}
    for row in rows:
        if row[value]:
            groups.setdefault(tuple(row[name] for name in columns), []).append(float(row[value]))
    return groups
