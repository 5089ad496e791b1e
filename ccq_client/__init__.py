"""A client of the CCQ Search service: `Client`, and `AsyncClient` for asyncio."""

__version__ = "0.1.0"

from ccq_client._async.client import AsyncClient
from ccq_client._async.items import AsyncItems
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
    VersionWarning,
    WaitTimeoutError,
)
from ccq_client.jobs import Job, JobFailure, JobProgress
from ccq_client.options import Filter, SearchOptions
from ccq_client.progress import Progress
from ccq_client.results import (
    Alias,
    Caller,
    Collection,
    Deleted,
    Encoder,
    Facet,
    Facets,
    Group,
    Groups,
    Hit,
    Hits,
    Indexed,
    Item,
    ItemPage,
    LatentMap,
    Limits,
    MapPoint,
    Modality,
    Model,
    PayloadSet,
    Snapshot,
    Usage,
)
from ccq_client.retrying import Retries

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
    "Usage",
    "VersionWarning",
    "WaitTimeoutError",
    "__version__",
]
