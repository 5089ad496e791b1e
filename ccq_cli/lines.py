"""Text files with one id or one JSON object a line, read some lines at a time."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import orjson

from ccq_core.errors import InvalidInputError
from service.errors import InvalidRequestError
from service.integers import has_huge_number, refuse_wide_integers
from service.places import shorten
from service.schemas.names import MAX_ID_BYTES

_BOM = b"\xef\xbb\xbf"
_CHUNK = 1 << 20


class LineFile:
    """A text file, a line for each row of the features. Only line feeds end lines: others may stand in an id.

    Parameters
    ----------
    path:
        The file.
    rows:
        How many lines it has to have; None: any number.

    Raises
    ------
    OSError
        It cannot be read.
    InvalidInputError
        It has another number of lines.
    """

    def __init__(self, path: Path, rows: int | None = None) -> None:
        self.path = path
        self.count = _count(path)
        if rows is not None and self.count != rows:
            raise InvalidInputError(
                f"{path}: expected {rows} lines, one for each row of the features, got {self.count}"
            )

    def parts(self, size: int) -> Iterator[list[bytes]]:
        """The lines, `size` at a time, without their ends."""
        with self.path.open("rb") as file:
            if file.read(len(_BOM)) != _BOM:
                file.seek(0)
            while part := b"".join(islice(file, size)):
                yield part.removesuffix(b"\n").removesuffix(b"\r").replace(b"\r\n", b"\n").split(b"\n")

    def fault(self, row: int, reason: str) -> InvalidInputError:
        """The error that something is wrong with the line of a row."""
        return InvalidInputError(f"{self.path}: line {row + 1}: {reason}")


def ids_of(file: LineFile, lines: list[bytes], first: int) -> list[str]:
    """Lines as ids; `first`: the row of the first. InvalidInputError where they are not UTF-8, or none."""
    for row, line in enumerate(lines, first):
        if not 1 <= len(line) <= MAX_ID_BYTES:
            raise file.fault(row, f"expected an id of 1 to {MAX_ID_BYTES} bytes, got {len(line)}")
    try:
        return b"\n".join(lines).decode().split("\n") if lines else []
    except UnicodeDecodeError:
        return [_decoded(file, line, row) for row, line in enumerate(lines, first)]


def check_payload(line: bytes) -> str | None:
    """Why a line is no payload, a JSON object or null; None if it is one."""
    try:
        payload = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        return f"not valid JSON ({error})"
    if payload is not None and not isinstance(payload, dict):
        return f"expected a JSON object, got {line[:60].decode()}"
    return None


def items_of(file: LineFile, lines: list[bytes], first: int) -> tuple[list[str], list[bytes | None]]:
    """Ids and payloads of lines that are objects of `id` and `payload`, as `ccq export` writes them.

    Parameters
    ----------
    file, lines:
        Where they are from, and some of its lines.
    first:
        The row of the first.

    Raises
    ------
    InvalidInputError
        A line that is something else.
    """
    ids, payloads = [], []
    for row, line in enumerate(lines, first):
        try:
            item = orjson.loads(line)
        except orjson.JSONDecodeError as error:
            raise file.fault(row, f"not valid JSON ({error})") from None
        if not isinstance(item, dict) or not {"id"} <= item.keys() <= {"id", "payload"}:
            raise file.fault(row, f"expected an object of id and payload, got {shorten(item)}")
        item_id, payload = item["id"], item.get("payload")
        if not isinstance(item_id, str):
            raise file.fault(row, f"id: expected a string, got {shorten(item_id)}")
        if payload is not None and not isinstance(payload, dict):
            raise file.fault(row, f"payload: expected an object or null, got {shorten(payload)}")
        ids.append(item_id)
        payloads.append(None if payload is None else _dumped(file, row, payload, line))
    return ids, payloads


def _dumped(file: LineFile, row: int, payload: dict[str, Any], line: bytes) -> bytes:
    data = orjson.dumps(payload)
    if has_huge_number(data):
        try:
            refuse_wide_integers(line, [("payload",)])
        except InvalidRequestError as error:
            raise file.fault(row, error.detail) from None
    return data


def _decoded(file: LineFile, line: bytes, row: int) -> str:
    try:
        return line.decode()
    except UnicodeDecodeError as error:
        raise file.fault(row, f"not UTF-8 ({error})") from None


def _count(path: Path) -> int:
    """How many lines a file has; the last may have no end."""
    count, last = 0, b"\n"
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            count += chunk.count(b"\n")
            last = chunk[-1:]
    return count + (last != b"\n")
