"""Jobs that train a model, on what a collection keeps or on a file that was sent."""

from __future__ import annotations

import logging
import os
import signal
from collections.abc import Mapping
from typing import Any

import orjson

from ccq_core.errors import InvalidInputError
from ccq_core.modelfile import write
from service.catalog import Catalog
from service.disk import FULL
from service.errors import (
    CoreInputError,
    Fault,
    InvalidRequestError,
    JobFailedError,
    StorageFullError,
    TrainingMemoryError,
)
from service.jobs.arrays import feature_files, rows_together
from service.jobs.child import ChildEnded, run_module
from service.jobs.export import export
from service.jobs.kind import Context
from service.jobs.runner import Draft, Jobs
from service.jobs.trainer import JOB, MODEL, MOST_HELD_OUT, RESULT
from service.jobs.upload import UPLOAD, setting_at_fault, unpack
from service.schemas.training import TrainingOptions, TrainingRequest
from service.settings import Settings
from service.store.interface import Store
from service.store.jobrecords import JobRecord
from service.store.kept import keeps
from service.writing import Asked

log = logging.getLogger(__name__)

KIND = "train"
_PROGRAM_BYTES = 200 << 20
_CODEWORDS = 256
_HINT = "train on features of fewer dimensions, with fewer bits or with codebook_solver 'cg', or give the machine more"
_THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "CCQ_THREADS")


class TrainingJobs:
    """Does such jobs; see `service.jobs.kind.JobKind`.

    Parameters
    ----------
    store, catalog:
        Where features come from, and where models go.
    settings:
        How many threads a training has.
    """

    kind = KIND

    def __init__(self, store: Store, catalog: Catalog, settings: Settings) -> None:
        self._store = store
        self._catalog = catalog
        self._threads = settings.training_threads

    def run(self, context: Context) -> Mapping[str, Any]:
        """Export features if they are a collection's, train in a process, and store the model."""
        directory = context.directory
        if not (directory / RESULT).exists():  # it does if the server died just before the model was stored
            self._prepare(context)
            self._train(context)
        result = orjson.loads((directory / RESULT).read_bytes())
        record, _, _ = self._catalog.put_model(context.target, (directory / MODEL).read_bytes())
        return {"model": record.name, "checksum": record.checksum, **result}

    def _prepare(self, context: Context) -> None:
        given = dict(context.parameters)
        held_out, collection, dims = given.pop("held_out"), given.pop("collection", None), given.pop("dims")
        number = given.pop("collection_number", None)
        if collection is not None:
            export(self._store, self._catalog.same_entry(collection, number).record, dims, context)
        if not feature_files(context.directory):
            raise JobFailedError("the features of this job are gone from the data directory: send them again")
        job = {"settings": given, "held_out": held_out, "dims": dims}
        write(context.directory / JOB, orjson.dumps(job))

    def _train(self, context: Context) -> None:
        told: dict[str, Any] = {}

        def take(line: dict[str, Any]) -> None:
            if "error" in line:
                told.update(line)
            else:
                context.progress(**line)

        threads = dict.fromkeys(_THREADS, str(self._threads))
        try:
            run_module("service.jobs.trainer", context.directory, threads, take, context.check)
        except ChildEnded as ended:
            raise failure(ended, told) from None


def failure(ended: ChildEnded, told: Mapping[str, Any]) -> Exception:
    """What to say of a training that did not end as it should; `told`: its own last words."""
    if ended.signal == signal.SIGKILL or told.get("error") == "MemoryError":
        return JobFailedError(f"the training was ended by the system, most likely as memory ran out: {_HINT}")
    if ended.signal is not None:
        return JobFailedError(f"the training was ended by signal {ended.signal}")
    if told.get("errno") in FULL:
        return StorageFullError("the disk that holds the data directory is full")
    if told and told.get("errno") is None:
        return InvalidInputError(told["detail"])
    log.error("a training failed: %s %s", told.get("detail", ""), ended.output)
    return JobFailedError("the training failed; the server's log has the details")


# -- for requests ----------------------------------------------------------------------------------------------------


def add_from_collection(
    jobs: Jobs, catalog: Catalog, settings: Settings, model: str, request: TrainingRequest, asked: Asked | None = None
) -> JobRecord:
    """Queue a training on what a collection keeps; with `asked` once.

    Raises
    ------
    ModelInUseError
        A collection uses the model of this name.
    UnknownCollectionError
        There is no such collection.
    InvalidRequestError
        It keeps no features.
    CoreInputError
        Settings that cannot be, or not for its features.
    TrainingMemoryError
        It would take too much memory.
    JobsFullError, UnavailableError
        It cannot be queued.
    DoneBefore, KeyReusedError
        It was asked for before, or something else with the same key.
    """
    jobs.check(asked)
    catalog.check_unused(model)
    record = catalog.entry(request.collection).record
    if not keeps(record):
        reason = f"collection {record.name!r} keeps no features to train on; it would have to be made with `keep`"
        raise InvalidRequestError.from_faults([Fault.at(("collection",), reason)])
    _, traits = catalog.model(record.model)
    dims = {name: int(modality["dim"]) for name, modality in traits.modalities.items()}
    try:
        request.model().check(dims)
    except InvalidInputError as error:
        raise CoreInputError(error, setting_at_fault(error, "#/")) from None
    _check_memory(request, dims, settings)
    of = {"collection": record.name, "collection_number": record.number}
    with jobs.draft(KIND) as draft:
        return jobs.add(draft, model, {**_parameters(request, dims), **of}, asked)


def add_from_file(
    jobs: Jobs,
    catalog: Catalog,
    settings: Settings,
    model: str,
    draft: Draft,
    options: TrainingOptions,
    asked: Asked | None = None,
) -> JobRecord:
    """Queue a training on the file `UPLOAD` in the directory of a draft.

    Raises what `add_from_collection` and `service.jobs.upload.unpack` raise.
    """
    catalog.check_unused(model)
    upload = draft.directory / UPLOAD
    dims = unpack(upload, draft.directory, options.model(), settings.max_training_bytes)
    upload.unlink()
    _check_memory(options, dims, settings)
    return jobs.add(draft, model, _parameters(options, dims), asked)


def training_bytes(options: TrainingOptions, dims: Mapping[str, int]) -> int:
    """About how much memory a training takes, whatever the number of objects."""
    model = options.model()
    words, numbers = _CODEWORDS * model.bits // 8, sum(dims.values())
    batches = 6 * 4 * rows_together(dims) * numbers
    sums = 8 * (3 * sum(dim**2 for dim in dims.values()) + 3 * words * numbers)
    solving = 8 * 3 * words**2 if model.codebook_solver == "cholesky" else 0
    trying = 3 * 4 * MOST_HELD_OUT * numbers if options.held_out else 0
    return _PROGRAM_BYTES + batches + sums + solving + trying


def _check_memory(options: TrainingOptions, dims: Mapping[str, int], settings: Settings) -> None:
    needed = training_bytes(options, dims)
    most = settings.max_memory_bytes or os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if needed > most:
        raise TrainingMemoryError(
            f"a training of these settings takes about {needed} bytes of memory, of {most}: {_HINT}"
        )


def _parameters(options: TrainingOptions, dims: Mapping[str, int]) -> dict[str, Any]:
    return {**options.settings(), "held_out": options.held_out, "dims": dict(dims)}
