"""An extension of Griffe, which reads the docstrings: parameters that are described together keep their own defaults.

Where a docstring has ``limit, offset:`` for one description, Griffe gives both the type and the default of the first.
"""

from __future__ import annotations

from typing import Any

import griffe


class OwnDefaults(griffe.Extension):
    """Takes type and default of every described parameter from the signature."""

    def on_package(self, *, pkg: griffe.Module, **_: Any) -> None:
        """Correct all docstrings of a package, once it is loaded as a whole."""
        _correct(pkg)


def _correct(owner: griffe.Object) -> None:
    # Those of data classes are made by another extension, later; to parse their docstrings before that is to miss them.
    called = isinstance(owner, griffe.Function) or (isinstance(owner, griffe.Class) and "__init__" in owner.members)
    if isinstance(owner, (griffe.Function, griffe.Class)) and called and owner.docstring is not None:
        signature = owner.parameters
        for section in owner.docstring.parsed:
            if isinstance(section, griffe.DocstringSectionParameters):
                for described in section.value:
                    if described.name in signature:
                        described.value = signature[described.name].default
                        described.annotation = signature[described.name].annotation
    for member in owner.members.values():
        if isinstance(member, griffe.Object) and not isinstance(member, griffe.Attribute):
            _correct(member)
