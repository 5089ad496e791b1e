from numpy import bool_, float32, float64, int16, int64, uint8, uint32, uint64
from numpy.typing import NDArray

class Rows:
    def __init__(
        self,
        segments: list[tuple[NDArray[uint8], int, NDArray[uint64] | None, int, NDArray[uint32] | None]],
        planes: int,
        live: int,
        used: NDArray[uint8] | NDArray[bool_] | None,
    ) -> None: ...

def levels() -> list[str]: ...
def search(
    rows: Rows,
    tables: NDArray[float32],
    cosine: bool,
    k: int,
    threads: int,
    level: str,
    plain: bool = False,
    norms: bool = True,
    only: NDArray[int64] | None = None,
) -> tuple[NDArray[int64], NDArray[float64], list[int]]: ...
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
def distance_tables(
    blocks: NDArray[float32], norms: NDArray[float32] | None, z: NDArray[float32], cosine: bool, level: str
) -> tuple[NDArray[float32], NDArray[float64]]: ...
def filter_rows(
    codes: NDArray[uint8], tables: NDArray[uint8], limit: int, level: str, norms: bool = True
) -> NDArray[uint32]: ...
def filter_hits(
    codes: NDArray[uint8], tables: NDArray[uint8], limits: NDArray[uint8], level: str
) -> list[NDArray[uint32]]: ...
def vector_keys(
    numbers: NDArray[int16],
    scales: NDArray[float32],
    rows: NDArray[int64],
    point: NDArray[float64],
    cosine: bool,
    level: str,
) -> NDArray[float64]: ...
def read(rows: Rows, level: str) -> int: ...
