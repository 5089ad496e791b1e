"""Options of training, shared by `ccq train`, `ccq evaluate` and `ccq demo`."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, TypeVar

import click

from ccq_core.distances import METRICS
from ccq_core.model import FULL, NORMS
from ccq_core.preprocessing import STEPS
from ccq_core.presets import PRESETS
from ccq_core.training import SOLVERS

LENGTHS = range(8, 129, 8)
Function = TypeVar("Function", bound=Callable[..., Any])


class Bits(click.ParamType[int]):
    """A code length: 8 to 128, by 8."""

    name = "integer"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        number: int = click.INT.convert(value, param, ctx)
        if number not in LENGTHS:
            nearest = sorted(sorted(LENGTHS, key=lambda bits: abs(bits - number))[: 2 if 8 < number < 128 else 1])
            self.fail(f"expected 8 to 128, by 8, got {number}: try {' or '.join(map(str, nearest))}", param, ctx)
        return number


class Dimension(click.ParamType[int | str]):
    """A latent dimension: a number, or `full`."""

    name = f"integer|{FULL}"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int | str:
        return FULL if value == FULL else click.IntRange(1).convert(value, param, ctx)


class NewName(click.ParamType[str]):
    """A name for what is made in a service."""

    name = "name"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        from service.schemas.names import NAME_PATTERN, NAME_RULE  # which takes long to load

        if not re.fullmatch(NAME_PATTERN, str(value)):
            self.fail(f"{value!r}: expected {NAME_RULE}", param, ctx)
        return str(value)


class Assignments(click.ParamType[dict[str, Any]]):
    """`image=1,text=5` as a dict; the values are converted by `convert_value`."""

    name = "name=value,..."

    def __init__(self, convert_value: Callable[[str], Any]) -> None:
        self.convert_value = convert_value

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> dict[str, Any]:
        if isinstance(value, dict):
            return value
        result = {}
        for part in value.split(","):
            name, _, text = part.partition("=")
            try:
                result[name.strip()] = self.convert_value(text)
            except ValueError:
                self.fail(f"{part!r}: expected NAME=VALUE", param, ctx)
        return result


def assignments(name: str, convert_value: Callable[[str], Any], **rest: Any) -> Callable[[Function], Function]:
    """An option of `Assignments`, in one piece or given for each name by itself; None if it is not given."""

    def merged(ctx: click.Context, param: click.Parameter, given: tuple[dict[str, Any], ...]) -> dict[str, Any] | None:
        names = [name for part in given for name in part]
        for twice in sorted({name for name in names if names.count(name) > 1}):
            raise click.BadParameter(f"{twice} is given twice", ctx, param)
        return {name: value for part in given for name, value in part.items()} or None

    return click.option(name, type=Assignments(convert_value), multiple=True, callback=merged, **rest)


def _steps_by_modality(
    ctx: click.Context, param: click.Parameter, given: tuple[str, ...]
) -> str | dict[str, str] | None:
    """`zca,unit` for all modalities, or `image=zca,unit` and `text=l2` by modality."""
    if len(given) < 2 and "=" not in "".join(given):
        return given[0] if given else None
    steps = {}
    for part in given:
        name, sign, value = part.partition("=")
        if not sign or name.strip() in steps:
            raise click.BadParameter(f"{part!r}: expected MODALITY=STEPS, each modality once", ctx, param)
        steps[name.strip()] = value
    return steps


def training_options(function: Function) -> Function:
    """Add the options of training. The command gets them as keyword arguments; `model_parameters` reads them."""
    for option in reversed(
        (
            click.option("--bits", type=Bits(), default=32, show_default=True, help="Code length: 8 to 128, by 8."),
            click.option(
                "--preset",
                type=click.Choice(list(PRESETS)),
                default="default",
                show_default=True,
                help="angles: within a modality, neighbours by its own cosine.",
            ),
            click.option("--metric", type=click.Choice(METRICS), help="Ranking."),
            click.option("--norm", type=click.Choice(NORMS), help="Without norms a row is a byte shorter."),
            assignments("--weights", float, help="lambda of each modality, as in text=5."),
            click.option("--dim", type=Dimension(), help="Latent dimension; full: all that the features have."),
            click.option(
                "--preprocess",
                multiple=True,
                callback=_steps_by_modality,
                metavar="[MODALITY=]STEPS",
                help=f"Steps, joined by commas, of {', '.join(STEPS)}, or none; once for all, or for each modality.",
            ),
            click.option("--mapping", type=click.Choice(["ridge", "procrustes"]), help="Maps of unseen objects."),
            click.option("--mapping-ridge", type=click.FloatRange(1e-9, 1e9), help="Penalty of the ridge maps."),
            click.option("--effort", type=click.IntRange(0, 3), help="How hard to look for codes: 0 greedy to 3."),
            click.option("--codebook-solver", type=click.Choice(SOLVERS), help="cg: long codes in little memory."),
            click.option(
                "--iterations",
                type=click.IntRange(1, 1_000_000),
                help="Iterations that are planned; training ends sooner where nothing is gained.",
            ),
            click.option("--seed", type=click.IntRange(0, 2**64), default=0, show_default=True),
        )
    ):
        function = option(function)
    return function


def model_parameters(options: dict[str, Any]) -> dict[str, Any]:
    """Arguments of `CCQ.preset` from the options that were given."""
    given = {key: value for key, value in options.items() if value is not None}
    return {"name": given.pop("preset"), **given}
