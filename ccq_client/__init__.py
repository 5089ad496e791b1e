"""A client of the CCQ Search service: `Client`, and `AsyncClient` for asyncio."""

__version__ = "0.1.0"

from ccq_client._async.client import AsyncClient
from ccq_client._async.items import AsyncItems
from ccq_client._sync.client import Client
from ccq_client._sync.items import Items
from ccq_client.errors import (
    ApiError,
    CCQError,
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
    Collection,
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
    Limits,
    Modality,
    Model,
    PayloadSet,
    Snapshot,
)
from ccq_client.retrying import Retries

__all__ = [
    "Alias",
    "ApiError",
    "AsyncClient",
    "AsyncItems",
    "CCQError",
    "Client",
    "Collection",
    "Deleted",
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
    "Limits",
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
    "VersionWarning",
    "WaitTimeoutError",
    "__version__",
]
