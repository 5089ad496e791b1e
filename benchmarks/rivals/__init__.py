"""Hashing methods that the CCQ paper compares with, written anew from their papers.

`RIVALS` maps the names of the paper's table to estimators; SCM comes in both variants. `REPLICAS` are what the paper
seems to have run instead, where that is another thing.
"""

from benchmarks.rivals.base import Rival
from benchmarks.rivals.cmssh import CMSSH
from benchmarks.rivals.corrae import CorrAE
from benchmarks.rivals.cvh import CVH, MagnitudeCVH
from benchmarks.rivals.hamming import hamming_search
from benchmarks.rivals.imh import IMH
from benchmarks.rivals.qch import QCH
from benchmarks.rivals.scm import OrthogonalSCM, SequentialSCM

RIVALS: dict[str, type[Rival]] = {
    "CVH": CVH,
    "IMH": IMH,
    "CorrAE": CorrAE,
    "CMSSH": CMSSH,
    "SCM-seq": SequentialSCM,
    "SCM-orth": OrthogonalSCM,
    "QCH": QCH,
}

REPLICAS: dict[str, type[Rival]] = {"CVH-magnitude": MagnitudeCVH}

__all__ = [
    "CMSSH",
    "CVH",
    "IMH",
    "QCH",
    "REPLICAS",
    "RIVALS",
    "CorrAE",
    "MagnitudeCVH",
    "OrthogonalSCM",
    "Rival",
    "SequentialSCM",
    "hamming_search",
]
