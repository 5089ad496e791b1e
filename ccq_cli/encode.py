"""`ccq encode`."""

from __future__ import annotations

import io

import click
import numpy as np

from ccq_cli.console import err
from ccq_cli.data import DATA_HELP, column_option, read_features
from ccq_cli.shown import local_json_option, print_json
from ccq_core import CCQ
from ccq_core.modelfile import check_writable, write


@click.command("encode", epilog=DATA_HELP)
@click.argument("model", type=click.Path(exists=True, dir_okay=False))
@click.argument("data", nargs=-1, required=True)
@click.option("-o", "--output", required=True, type=click.Path(dir_okay=False), help=".npy file to write.")
@column_option
@local_json_option
def command(model: str, data: tuple[str, ...], output: str, columns: tuple[str, ...], as_json: bool) -> None:
    """Encode DATA with a MODEL file into (n, M + 1) uint8 codes.

    An object with several modalities becomes one fused item.
    """
    if output.endswith((".npz", ".parquet")):
        raise click.BadParameter(f"-o {output}: expected a name FILE.npy: it will hold one array")
    check_writable(output)
    codes = CCQ.load(model).encode(read_features(data, columns))
    buffer = io.BytesIO()
    np.save(buffer, codes)
    write(output, buffer.getvalue())
    if as_json:
        print_json({"output": output, "items": len(codes), "bytes_per_item": codes.shape[1]})
        return
    err.print(f"{output}: {len(codes):,} items of {codes.shape[1]} bytes")
