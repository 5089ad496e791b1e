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
from ccq_client.jobs import Job, JobProgress
from ccq_client.progress import Progress
from ccq_client.results import Alias, Collection, Group, Groups, Hit, Hits, Indexed, Item, Limits, Model, Snapshot
from ccq_client.retrying import Retries

__all__ = [
    "Alias",
    "ApiError",
    "AsyncClient",
    "AsyncItems",
    "CCQError",
    "Client",
    "Collection",
    "Group",
    "Groups",
    "Hit",
    "Hits",
    "Indexed",
    "IndexingError",
    "InputError",
    "Item",
    "Items",
    "Job",
    "JobError",
    "JobProgress",
    "Limits",
    "Model",
    "Progress",
    "Retries",
    "Snapshot",
    "TransportError",
    "TransportTimeoutError",
    "UnexpectedReplyError",
    "VersionWarning",
    "WaitTimeoutError",
    "__version__",
]
