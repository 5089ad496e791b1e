"""Makes `ccq_client._sync` of `ccq_client._async`: ``make client``. A script that imports nothing of the package.

There is one text of every verb. Type checkers, editors and debuggers see two plain ones; a test compares them.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
SOURCE, TARGET = HERE / "_async", HERE / "_sync"
HEAD = "# Made by `make client` of ccq_client/_async. Change that.\n"
PACKAGE = '"""Made of `ccq_client._async` by `make client`."""\n'

# In this order.
RULES = (
    (r"\b_async\b", "_sync"),
    (r"\basync (def|with|for) ", r"\1 "),
    (r"`async with`", "`with`"),
    (r"\bawait ", ""),
    (r"__a(enter|exit)__", r"__\1__"),
    (r"\ba(close|read|iter_bytes)\b", r"\1"),
    (r"\b(each|sleep|chunks)_async\b", r"\1"),
    (r"\bAsync(?=[A-Z])", ""),
)


def sync_text(text: str) -> str:
    """The same module without coroutines, as `ruff format` wants it."""
    for pattern, replacement in RULES:
        text = re.sub(pattern, replacement, text)
    command = [sys.executable, "-m", "ruff"]
    ours = f"lint.isort.known-first-party=['{HERE.name}']"
    for verb in (["check", "--select", "I", "--fix-only", "--quiet", "--config", ours], ["format"]):
        options = [*command, *verb, "--stdin-filename", str(TARGET / "module.py"), "-"]
        text = subprocess.run(options, input=text, capture_output=True, text=True, check=True).stdout  # noqa: S603
    return text


def modules() -> dict[Path, str]:
    """The files of the package without coroutines, and what belongs in them."""
    found = {TARGET / "__init__.py": PACKAGE}
    for path in sorted(SOURCE.glob("*.py")):
        if path.name != "__init__.py":
            found[TARGET / path.name] = HEAD + sync_text(path.read_text(encoding="utf-8"))
    return found


if __name__ == "__main__":
    for target, text in modules().items():
        target.write_text(text, encoding="utf-8")
