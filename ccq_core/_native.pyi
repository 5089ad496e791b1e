from numpy import bool_, float32, float64, int64, uint8, uint64
from numpy.typing import NDArray

def levels() -> list[str]: ...
def search(
    segments: list[tuple[NDArray[uint8], int, NDArray[uint64] | None]],
    tables: NDArray[float32],
    used: NDArray[uint8] | NDArray[bool_] | None,
    cosine: bool,
    k: int,
    rows: int,
    threads: int,
    level: str,
    plain: bool = False,
) -> tuple[NDArray[int64], NDArray[float64], NDArray[int64]]: ...
def encode(
    unary: NDArray[float32],
    cross: NDArray[float32],
    codes: NDArray[uint8],
    beam: int,
    sweeps: int,
    rounds: int,
    start: bool,
    threads: int,
    level: str,
) -> None: ...
def read(data: NDArray[uint8], level: str) -> int: ...
