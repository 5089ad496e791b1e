"""The data sets of the experiments, and the six tasks."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ccq_core.datasets import load_emoji
from ccq_core.evaluation import LabelledData, load_dataset

WIKI = "Wiki"
EMOJI = "emoji"


@dataclass(frozen=True)
class Task:
    """One retrieval task.

    Attributes
    ----------
    name:
        As the paper writes it.
    query:
        Modality of the queries.
    database:
        Modalities of the database's items; several make fused items.
    """

    name: str
    query: str
    database: tuple[str, ...]


TASKS = (
    Task("I->I", "image", ("image",)),
    Task("T->T", "text", ("text",)),
    Task("I->T", "image", ("text",)),
    Task("T->I", "text", ("image",)),
    Task("I->IT", "image", ("image", "text")),
    Task("T->IT", "text", ("image", "text")),
)
CROSS = ("I->T", "T->I")


def task_named(name: str) -> Task:
    """The task of this name."""
    return next(task for task in TASKS if task.name == name)


def shown(task: str) -> str:
    """A task's name with a real arrow."""
    return task.replace("->", "→")


def load_emoji_data() -> LabelledData:
    """The shipped emoji: groups are the labels."""
    emoji = load_emoji()
    return LabelledData(dict(emoji.train.features), dict(emoji.test.features), emoji.train.labels, emoji.test.labels)


def load_data(wiki: Path | None) -> dict[str, LabelledData]:
    """The data sets that can be had, by name: Wiki where its file is given, and emoji."""
    data = {} if wiki is None else {WIKI: load_dataset(wiki)}
    return {**data, EMOJI: load_emoji_data()}
