"""Everything that a running service holds, put together in one place."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Self

from ccq_core import modelfile
from service.access import Access
from service.catalog import Catalog
from service.encoders.configuration import open_encoders
from service.errors import DatabaseError, UnavailableError
from service.gathering import Gathering
from service.insight import Insight
from service.jobs.reencode import ReencodeJobs
from service.jobs.runner import Jobs
from service.jobs.training import TrainingJobs
from service.searchers.pool import SearchProcesses
from service.settings import Settings
from service.snapshots import Snapshots
from service.store.interface import Store
from service.store.sqlite import SQLiteStore
from service.workers import Workers

_WAITING = 256


@dataclass(frozen=True)
class Runtime:
    """What a running service holds.

    Attributes
    ----------
    access:
        Tells who asks, and what that caller may do.
    reads, writes:
        Threads for searches and other reads, and for writes.
    commits:
        Threads that wait for the disk: the more wait, the more are committed together.
    searches:
        Searches, gathered for the threads and processes that are free.
    processes:
        Processes for searches.
    snapshots:
        Copies of all that the store holds.
    jobs:
        Work in the background.
    insight:
        What is in collections, to be looked at.
    """

    settings: Settings
    access: Access
    store: Store
    catalog: Catalog
    reads: Workers
    writes: Workers
    commits: Workers
    searches: Gathering
    processes: SearchProcesses
    snapshots: Snapshots
    jobs: Jobs
    insight: Insight

    @classmethod
    def open(cls, settings: Settings, model_path: Path | None = None, access: Access | None = None) -> Self:
        """Open the data directory.

        Parameters
        ----------
        settings:
            Where it is, and how much may be done at one time.
        model_path:
            A model file that the default collection is to have; it is stored under the file's stem.
        access:
            By default made from the settings.

        Raises
        ------
        StartError
            The keys cannot be read, an encoder cannot be used, the directory is in use, its database cannot be used, or
            the model does not fit the default collection.
        ModelFileError, OSError
            The model file cannot be used, or read.
        """
        access = Access(settings) if access is None else access
        store = SQLiteStore(settings.data, settings.page_cache_bytes)
        try:
            processes = SearchProcesses(settings, store)
            catalog = Catalog(store, settings, open_encoders(settings), processes)
            if model_path is not None:
                with modelfile.naming(model_path):
                    catalog.adopt(model_path.stem, model_path.read_bytes(), settings.default_collection)
            snapshots = Snapshots(store, settings)
            jobs = Jobs(store.jobs, settings, [TrainingJobs(store, catalog, settings), ReencodeJobs(catalog)])
        except UnavailableError as error:
            store.close()
            raise DatabaseError(f"data directory {settings.data}: {error} ({error.__cause__})") from error
        except BaseException:
            store.close()
            raise
        reads = Workers(settings.search_threads)
        writes, commits = Workers(settings.write_threads), Workers(_WAITING)
        searches = Gathering(reads, settings, processes)
        return cls(
            settings, access, store, catalog, reads, writes, commits, searches, processes, snapshots, jobs, Insight()
        )

    def start(self) -> None:
        """Begin loading collections, making snapshots, and working on jobs; requests may come already."""
        self.processes.start()
        self.catalog.start_loading()
        self.snapshots.start()
        self.jobs.start()

    def close(self) -> None:
        """End what goes on in the background, finish the write in progress, let go of it all."""
        self.processes.close()
        self.searches.close()
        self.jobs.close()
        self.catalog.stop()
        self.snapshots.close()
        self.store.close()
