"""Log lines: as text for people, or as JSON for programs; those of a request have its id."""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime
from typing import Any

from service import requestid
from service.settings import Settings

_TEXT = "%(asctime)s %(levelname)s %(name)s: %(message)s"
# What every record has; the rest was given as `extra`.
_USUAL = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "color_message"}


def configure(settings: Settings) -> None:
    """Log to standard error as the settings say; nothing changes where the program logs already."""
    handler = logging.StreamHandler()
    handler.setFormatter(JsonLines() if settings.log_format == "json" else TextLines(_TEXT))
    handler.addFilter(_plainly_named)
    logging.basicConfig(level=settings.log_level.upper(), handlers=[handler])


def _plainly_named(record: logging.LogRecord) -> bool:
    """Uvicorn calls what tells of starts and stops after errors, which would frighten people who read it."""
    if record.name == "uvicorn.error":
        record.name = "uvicorn"
    return True


class TextLines(logging.Formatter):
    """Time, level, logger, message, and in brackets the request's id."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 (its name in logging)
        """The line, without a traceback."""
        line = super().formatMessage(record)
        request_id = requestid.current.get()
        return f"{line} [{request_id}]" if request_id else line


class JsonLines(logging.Formatter):
    """One JSON object a line: time, level, logger, message, request_id, what was given as `extra`, and exception."""

    def format(self, record: logging.LogRecord) -> str:
        """The line."""
        time = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        entry: dict[str, Any] = {
            "time": time.replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            "request_id": requestid.current.get() or None,
        }
        entry.update({name: value for name, value in vars(record).items() if name not in _USUAL})
        if record.exc_info:
            entry["exception"] = self.formatException(record.exc_info)
        return json.dumps(entry, default=str)  # ASCII, so that no text whatever can break the line
