"""Places in a request body, for programs (JSON pointers) and for people."""

from __future__ import annotations

import re
import reprlib
from collections.abc import Iterable
from difflib import get_close_matches
from itertools import islice
from urllib.parse import quote

Location = tuple[str | int, ...]

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_LONGEST = 80
_FEW_NAMES = 5
_MOST_NAMES = 200  # to compare one with: a search is answered where others wait

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


def instead(name: str, there: Iterable[str]) -> str:
    """What there is in place of a name that there is not, to stand behind it: what is spelled alike, or all of few."""
    names = list(islice(there, _MOST_NAMES))
    offered = get_close_matches(name, names, 3) or (names if len(names) <= _FEW_NAMES else [])
    return f" (there {'is' if len(offered) == 1 else 'are'} {', '.join(map(repr, offered))})" if offered else ""
