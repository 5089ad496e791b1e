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
    TransportError,
    TransportTimeoutError,
    UnexpectedReplyError,
    VersionWarning,
)
from ccq_client.progress import Progress
from ccq_client.results import Collection, Group, Groups, Hit, Hits, Indexed, Item, Limits, Model, Snapshot
from ccq_client.retrying import Retries

__all__ = [
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
    "Limits",
    "Model",
    "Progress",
    "Retries",
    "Snapshot",
    "TransportError",
    "TransportTimeoutError",
    "UnexpectedReplyError",
    "VersionWarning",
    "__version__",
]
