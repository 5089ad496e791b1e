"""A client of the CCQ Search service: `Client`, and `AsyncClient` for asyncio."""

__version__ = "0.1.0"

from importlib import import_module
from typing import TYPE_CHECKING

from ccq_client._sync.client import Client
from ccq_client._sync.items import Items
from ccq_client.errors import (
    ApiError,
    CCQError,
    EmptyDatabaseWarning,
    IndexingError,
    InputError,
    JobError,
    TransportError,
    TransportTimeoutError,
    UnexpectedReplyError,
    UnknownKeyWarning,
    VersionWarning,
    WaitTimeoutError,
)
from ccq_client.options import Filter, SearchOptions
from ccq_client.progress import Progress
from ccq_client.results import (
    Deleted,
    Facet,
    Facets,
    Group,
    Groups,
    Hit,
    Hits,
    Indexed,
    Item,
    ItemPage,
    PayloadSet,
)
from ccq_client.retrying import Retries

if TYPE_CHECKING:
    from ccq_client._async.client import AsyncClient
    from ccq_client._async.items import AsyncItems
    from ccq_client.jobs import Job, JobFailure, JobProgress
    from ccq_client.limits import Caller, Encoder, Limits
    from ccq_client.resources import Alias, Collection, LatentMap, MapPoint, Modality, Model, Snapshot, Usage

__all__ = [
    "Alias",
    "ApiError",
    "AsyncClient",
    "AsyncItems",
    "CCQError",
    "Caller",
    "Client",
    "Collection",
    "Deleted",
    "EmptyDatabaseWarning",
    "Encoder",
    "Facet",
    "Facets",
    "Filter",
    "Group",
    "Groups",
    "Hit",
    "Hits",
    "Indexed",
    "IndexingError",
    "InputError",
    "Item",
    "ItemPage",
    "Items",
    "Job",
    "JobError",
    "JobFailure",
    "JobProgress",
    "LatentMap",
    "Limits",
    "MapPoint",
    "Modality",
    "Model",
    "PayloadSet",
    "Progress",
    "Retries",
    "SearchOptions",
    "Snapshot",
    "TransportError",
    "TransportTimeoutError",
    "UnexpectedReplyError",
    "UnknownKeyWarning",
    "Usage",
    "VersionWarning",
    "WaitTimeoutError",
    "__version__",
]

# Imported once they are asked for, as most programs, and commands of a terminal, need none of them. This is told to no
# type checker, for it would take any name then.
if not TYPE_CHECKING:
    _LATER = {
        "_async.client": ("AsyncClient",),
        "_async.items": ("AsyncItems",),
        "jobs": ("Job", "JobFailure", "JobProgress"),
        "limits": ("Caller", "Encoder", "Limits"),
        "resources": ("Alias", "Collection", "LatentMap", "MapPoint", "Modality", "Model", "Snapshot", "Usage"),
    }

    def __getattr__(name):
        for module, names in _LATER.items():
            if name in names:
                found = globals()[name] = getattr(import_module(f"{__name__}.{module}"), name)
                return found
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

    def __dir__():
        return sorted({*globals(), *__all__})
