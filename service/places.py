"""Places in a request body, for programs (JSON pointers) and for people."""

from __future__ import annotations

import re
import reprlib
from urllib.parse import quote

Location = tuple[str | int, ...]

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_LONGEST = 80

_REPR = reprlib.Repr()
_REPR.maxstring = _REPR.maxother = _LONGEST
_REPR.maxlevel = 2
_REPR.maxlist = _REPR.maxdict = 3


def pointer(location: Location) -> str:
    """The place as URI fragment (RFC 6901, section 6): ``#/items/3/features/image``; ``#`` is the whole body."""
    steps = (str(step).replace("~", "~0").replace("/", "~1") for step in location)
    return "#" + "".join("/" + quote(step, safe="~!$&'()*+,;=:@") for step in steps)


def path(location: Location) -> str:
    """The place as people write it: ``items[3].features.image``; empty for the whole body."""
    text = ""
    for step in location:
        if isinstance(step, int):
            text += f"[{step}]"
        elif _PLAIN.fullmatch(step) and len(step) <= _LONGEST:
            text += f".{step}" if text else step
        else:
            text += f"[{shorten(step)}]"
    return text


def shorten(value: object) -> str:
    """The value's repr, cut where it gets long: messages quote what clients send, and clients send anything."""
    return _REPR.repr(value)
