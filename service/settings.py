"""Settings of the service. Each can be given as environment variable ``CCQ_...`` (`CCQ_DATA`, `CCQ_PORT`, ...)."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, SecretStr, StringConstraints, model_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from ccq_core.processors import processors
from service.schemas.names import NAME_PATTERN

_MIB = 1 << 20


def _named(directory: Any) -> Any:
    if directory == "":  # to a path that is the working directory, which an empty variable does not mean
        raise ValueError("expected a directory, got an empty name")
    return directory


def _no_file(file: Any) -> Any:
    return None if file == "" else file


def _listed(given: Any) -> Any:
    return [part.strip() for part in given.split(",") if part.strip()] if isinstance(given, str) else given


Origin = Annotated[str, StringConstraints(pattern=r"^(\*|https?://[^/\s]+)$")]


class Settings(BaseSettings):
    """Settings of one server."""

    model_config = SettingsConfigDict(env_prefix="CCQ_", extra="forbid", frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _without_empty(cls, given: Any) -> Any:
        """An empty variable is one that is not set, as files of variables have it; where data are is not guessed."""
        return {name: value for name, value in given.items() if name == "data" or value != ""}

    data: Annotated[Path, BeforeValidator(_named)] = Field(
        description="Data directory. Created if missing; one server at a time may use it."
    )
    host: str = Field(
        default="127.0.0.1", description="Address to listen on. 0.0.0.0 is every IPv4 address of the machine."
    )
    port: int = Field(default=8000, ge=0, le=65535, description="Port to listen on; 0 takes a free one and prints it.")
    open: bool = Field(
        default=False,
        description="Serve without API keys, where there are none, to other machines too. This machine needs no leave.",
    )
    jwt_secret: SecretStr | None = Field(
        default=None,
        description="Secret of JSON Web Tokens (HS256, HS384, HS512) that are valid beside API keys.",
    )
    jwt_public_key_file: Path | None = Field(
        default=None,
        description="PEM file of the public key (RSA, EC, Ed25519) of JSON Web Tokens that are valid beside API keys.",
    )
    jwt_audience: str | None = Field(default=None, description="The `aud` that such tokens must have.")
    tls_certificate: Path | None = Field(
        default=None, description="PEM file of the certificate, and those it hangs on: HTTPS instead of HTTP."
    )
    tls_key: Path | None = Field(default=None, description="PEM file of the certificate's private key, not encrypted.")
    cors_origins: Annotated[tuple[Origin, ...], NoDecode, BeforeValidator(_listed)] = Field(
        default=(),
        description="Origins whose web pages may call the service, joined by commas, as in `https://app.example`; "
        "`*` is any. A server without keys may be called by their hosts' names too.",
    )
    encoders: Annotated[Path | None, BeforeValidator(_no_file)] = Field(
        default=None,
        description="TOML file of encoders, which make features of texts and images; see docs/encoders.md.",
    )
    default_collection: str = Field(
        default="default",
        pattern=NAME_PATTERN,
        description="The collection that paths without /collections/{name} act on.",
    )
    max_body_bytes: int = Field(default=32 * _MIB, ge=1024, description="Longest JSON body that is accepted.")
    max_model_bytes: int = Field(default=256 * _MIB, ge=1024, description="Longest model file that is accepted.")
    max_payload_bytes: int = Field(default=64 * 1024, ge=2, description="Longest payload of one item, as compact JSON.")
    max_text_chars: int = Field(
        default=10_000, ge=1, description="Longest text that is given to an encoder, in characters."
    )
    max_image_bytes: int = Field(
        default=16 * _MIB, ge=1024, description="Longest image file that is given to an encoder."
    )
    max_image_pixels: int = Field(
        default=40_000_000, ge=64, description="Width times height of the largest image that is given to an encoder."
    )
    max_batch_items: int = Field(
        default=10_000, ge=1, description="Most items in one request to /index, and ids in one to /items/delete."
    )
    max_batch_queries: int = Field(
        default=1_000, ge=1, description="Most queries, and examples of `query_by`, in one request to /search."
    )
    max_limit: int = Field(
        default=10_000,
        ge=1,
        description="Highest `limit` of a search, a listing or of facets, and how deep pages of a search go.",
    )
    max_results: int = Field(
        default=100_000,
        ge=1,
        description="Most results that one request to /search may ask for: queries or `group_size`, times `limit`.",
    )
    max_facet_values: int = Field(
        default=100_000, ge=1, description="Most distinct values that /facets counts; more are refused."
    )
    max_reply_bytes: int = Field(
        default=64 * _MIB,
        ge=1024,
        description="About the longest reply: a search with more is refused, a listing ends its page earlier.",
    )
    max_waiting: int = Field(
        default=1024,
        ge=1,
        description="Most requests in progress or waiting; one more gets the problem `overloaded`.",
    )
    max_waiting_writes: int = Field(
        default=256, ge=1, description="Most writes in progress or waiting, of `CCQ_MAX_WAITING`."
    )
    max_training_bytes: int = Field(
        default=4096 * _MIB,
        ge=1024,
        description="Longest file of features to train on, packed and unpacked.",
    )
    max_jobs: int = Field(default=16, ge=1, description="Most background jobs queued or running; one runs at a time.")
    max_memory_bytes: int | None = Field(
        default=None,
        ge=1024,
        description="Most memory that the bodies in progress may take: 12 times the length of JSON, 3 times that of a "
        "model file. No limit by default.",
    )
    request_seconds: float = Field(
        default=60,
        gt=0,
        description="Longest that a request may take, the arrival of its body included; then it gets the problem "
        "`timeout`. As long may its head take; then the connection is closed.",
    )
    page_cache_bytes: int = Field(
        default=64 * _MIB,
        ge=0,
        description="Memory for pages of the database that were read before, about: ids, payloads and indexes of what "
        "is found come faster from there.",
    )
    filter_cache_bytes: int = Field(
        default=32 * _MIB,
        ge=0,
        description="Memory for what filters matched: the same filter is answered from there until the collection "
        "changes.",
    )
    rescore_cache_bytes: int = Field(
        default=256 * _MIB,
        ge=0,
        description="Memory for what results are ranked anew by (`rescore`): two bytes a latent dimension and 12 more "
        "for each item in a database, taken from the first such search on. The default holds a million items of 128 "
        "dimensions; with less than all need, such searches read from disk, and are several times slower.",
    )
    max_rows_at_once: int = Field(
        default=100_000_000,
        ge=0,
        description="Most code rows that quick searches look at together on the event loop, once for each search; more "
        "is left to threads. 10^8 take some 10 milliseconds; 0: everything is left to threads.",
    )
    search_processes: int = Field(
        default=0,
        ge=0,
        le=256,
        description="Processes that answer quick searches beside the server, so that more cores can. Each takes some "
        "80 MB, and once more the codes and the memory for pages, filters and `rescore`.",
    )
    search_threads: int = Field(
        default_factory=processors,
        ge=1,
        description="Searches and other reads that run at one time; the number of processors by default.",
    )
    write_threads: int = Field(
        default=4,
        ge=1,
        description="Writes that are checked and encoded at one time; they are committed together.",
    )
    training_threads: int = Field(
        default_factory=lambda: max(processors() // 2, 1),
        ge=1,
        description="Threads of a training, which give way to the server; half the number of processors by default.",
    )
    shutdown_seconds: int = Field(
        default=30,
        ge=1,
        description="How long requests in progress may take to finish once the server was told to stop.",
    )
    ui: bool = Field(default=True, description="Serve the dashboard at /ui.")
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        default="info", description="Least level that is logged."
    )
    log_format: Literal["text", "json"] = Field(
        default="text", description="`text` for people, `json` for programs: one object a line."
    )
    access_log: bool = Field(default=False, description="Log every request.")
    slow_ms: int = Field(
        default=1000, ge=0, description="Requests that take longer are logged, in milliseconds; 0 logs none for that."
    )
    snapshot_minutes: float | None = Field(
        default=None, gt=0, description="How often a snapshot is made by itself. Never by default."
    )
    snapshot_keep: int = Field(
        default=3, ge=1, description="How many of those are kept; older ones are deleted once there is a new one."
    )
    jobs_keep: int = Field(
        default=100, ge=1, description="How many jobs that have ended are listed; older ones are forgotten."
    )
    metrics_open: bool = Field(default=False, description="Give /metrics to anyone, not to `admin` keys alone.")
    otel_endpoint: str | None = Field(
        default=None,
        description="Where to send traces by OTLP over HTTP, as in `http://collector:4318/v1/traces`.",
    )
