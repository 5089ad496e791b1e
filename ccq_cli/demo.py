"""`ccq demo`: the whole path on real data, in about a minute, without a download."""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import click
from rich.prompt import Prompt
from rich.table import Table
from rich.text import Text

from ccq_cli.api import connect
from ccq_cli.console import err, out, training_progress
from ccq_cli.options import Bits
from ccq_cli.words import in_words
from ccq_client import CCQError as ClientError
from ccq_client import Client, Hits
from ccq_core import CCQ
from ccq_core.datasets import EmojiDataset, load_emoji

WORDS = ("cat", "clock", "red fruit", "smiling face")
PICTURES = ("🐱", "💙", "🇯🇵", "🌘")
_START_SECONDS = 60


@click.command("demo")
@click.option("--bits", type=Bits(), default=64, show_default=True, help="Code length: 8 to 128, by 8.")
@click.option("--words", multiple=True, help="Words to search pictures by; may be repeated.")
@click.option("--keep-serving", is_flag=True, help="Leave the service up, and ask for words to search by.")
@click.option(
    "--data",
    type=click.Path(file_okay=False, path_type=Path),
    help="Directory to keep model and items in, by code length; otherwise nothing is kept.",
)
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="Port to serve on; a free one by default.")
def command(bits: int, words: tuple[str, ...], keep_serving: bool, data: Path | None, port: int) -> None:
    """Train on emoji, serve, and search pictures by words and words by pictures."""
    emoji = load_emoji()
    with _unwound_by_signals(), contextlib.ExitStack() as stack:
        if data is None:
            directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="ccq-demo-")))
        else:
            directory = data / f"{bits}-bits"  # a collection keeps its model
            directory.mkdir(parents=True, exist_ok=True)
        model_file = directory / "emoji.ccq"
        _train(emoji, bits, model_file)
        url = stack.enter_context(_service(directory / "store", model_file, port))
        client = stack.enter_context(connect(url))
        client.collections.create("default", model_file.stem, encoders={"text": "emoji"})
        _index(client, emoji)
        _show_by_words(client, words or WORDS)
        if not words:
            _show_by_pictures(client, emoji, PICTURES)
        if data is not None:
            _report(
                "Kept", f"in {directory}: `ccq serve --data {shlex.quote(str(directory / 'store'))}` serves it again"
            )
        if keep_serving:
            _keep_serving(client, url)


@contextlib.contextmanager
def _unwound_by_signals() -> Iterator[None]:
    """Let a signal that would end the process at once end it as an exception does, so that nothing is left behind."""
    numbers = [n for n in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(n) is signal.SIG_DFL]

    def unwind(number: int, _: object) -> None:
        for each in numbers:
            signal.signal(each, signal.SIG_IGN)
        sys.exit(128 + number)

    for number in numbers:
        signal.signal(number, unwind)
    try:
        yield
    finally:
        for number in numbers:
            signal.signal(number, signal.SIG_DFL)


def _report(title: str, facts: str) -> None:
    out.print(Text.assemble((title, "bold"), f"  {facts}"))


def _train(emoji: EmojiDataset, bits: int, model_file: Path) -> None:
    began = time.perf_counter()
    with training_progress("training on emoji") as report:
        model = CCQ(bits=bits).fit(emoji.all.features, callback=report)
    model.save(model_file)
    _report(
        "1. Train",
        f"{len(emoji.all):,} pairs of picture and description, {bits} bits: "
        f"{time.perf_counter() - began:.1f} s, loss {model.losses_[-1]:.3f}",
    )


@contextlib.contextmanager
def _service(directory: Path, model_file: Path, port: int) -> Iterator[str]:
    """A real service in a process of its own; yields its URL and stops it at the end.

    It has no settings but these, runs no module of the working directory (-P), and ends with this process.
    """
    command = [sys.executable, "-P", "-m", "ccq_cli", "serve", "--until-eof", "--data", str(directory)]
    command += ["--model", str(model_file), "--port", str(port)]
    environment = {name: value for name, value in os.environ.items() if not name.upper().startswith("CCQ_")}
    environment["CCQ_LOG_LEVEL"] = "warning"
    process = subprocess.Popen(  # noqa: S603
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    )
    try:
        yield wait_until_ready(process)
    finally:
        process.terminate()
        try:
            process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                pipe.close()


def wait_until_ready(process: subprocess.Popen[str]) -> str:
    """Read the address that a starting `ccq serve` prints, and wait until it answers that it is ready; the URL."""
    if process.stdout is None:
        raise click.ClickException("the service has no output to read its address from")
    for line in process.stdout:
        if "http://" in line:
            url = "http://" + line.split("http://")[1].split()[0]
            break
    else:
        raise click.ClickException(f"the service stopped with status {process.wait()}; its messages are above")
    with connect(url) as client:
        try:
            client.wait_until_ready(_START_SECONDS)
        except ClientError as error:
            raise click.ClickException(f"the service did not become ready: {error}") from None
    return url


def _index(client: Client, emoji: EmojiDataset) -> None:
    items = emoji.all
    ids = [f"U+{'-'.join(f'{ord(c):X}' for c in glyph)}" for glyph in items.glyphs]
    rows = zip(items.glyphs, items.names, items.groups, strict=True)
    payloads = [{"glyph": glyph, "name": name, "group": group} for glyph, name, group in rows]
    done = client.index(ids, items.features, payloads, batch_items=500)
    databases = client.collections.get("default").databases or {}
    _report(
        "2. Index",
        f"{done.indexed:,} emoji over HTTP, durable: {done.seconds:.1f} s "
        f"({done.indexed / done.seconds:,.0f} a second); databases {', '.join(databases)}",
    )


def _told(hits: Hits, key: str, between: str) -> str:
    """What hits have under a key of their payloads."""
    return between.join(str((hit.payload or {})[key]) for hit in hits)


def _show_by_words(client: Client, words: Sequence[str]) -> None:
    table = Table("words", "pictures (database image)", "pairs (database pair)", title="3. Pictures by words")
    for text in words:
        query = {"text": text}  # the service has an encoder for the words of emoji
        rows = [_told(client.search(query, database=kind, limit=8), "glyph", " ") for kind in ("image", "pair")]
        table.add_row(text, *rows)
    out.print(table)


def _show_by_pictures(client: Client, emoji: EmojiDataset, glyphs: Sequence[str]) -> None:
    items = emoji.all
    table = Table("picture", "words (database text)", "pictures (database image)", title="4. Words by pictures")
    for glyph in glyphs:
        query = {"image": items.features["image"][items.glyphs.index(glyph)]}
        names = _told(client.search(query, database="text", limit=4), "name", ", ")
        alike = _told(client.search(query, database="image", limit=8), "glyph", " ")
        table.add_row(glyph, names, alike)
    out.print(table)


def _keep_serving(client: Client, url: str) -> None:
    _report("Serving", f"at {url}, dashboard at {url}/ui/, documentation at {url}/docs. Ctrl-C ends it.")
    with contextlib.suppress(KeyboardInterrupt):
        if not (sys.stdin.isatty() and err.is_terminal):
            while True:
                time.sleep(3600)
        while True:
            text = Prompt.ask("words to search pictures by (empty ends)", console=out).strip()
            if not text:
                return
            try:
                _show_by_words(client, [text])
            except ClientError as error:
                out.print(Text(in_words(error), style="red"))
