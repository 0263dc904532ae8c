"""The settings of a server or a command, read once from the environment, then frozen."""

import difflib
import os
from collections.abc import Callable, Mapping
from ipaddress import ip_address
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import (
    AfterValidator,
    AliasChoices,
    BeforeValidator,
    Field,
    SecretStr,
    ValidationError,
    model_validator,
)
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from ibid.domain.errors import Misconfigured

PREFIX = "IBID_"
NOT_OURS = frozenset({"IBID_SHARED"})  # names the data of benches and tests


def _folders(value: object) -> object:
    """Split a search path such as `/srv/a:/srv/b`; an empty one means none."""
    if isinstance(value, str):
        return tuple(part for part in value.split(os.pathsep) if part)
    return value


def _from_env(name: str) -> AliasChoices:
    """Read a variable that other clients know by the same name, without our prefix."""
    return AliasChoices(name, name.lower())


def _one_of(*kinds: str) -> Callable[[str], str]:
    """Check for one of the words, or for what begins with one that ends in a colon."""

    def checked(value: str) -> str:
        kind, colon, name = value.partition(":")
        if kind + colon not in kinds or (colon and not name):
            names = ", ".join(f"{kind}..." if kind.endswith(":") else kind for kind in kinds)
            raise ValueError(f"must be one of {names}")
        return value

    return checked


class Settings(BaseSettings):
    """What `ibid serve` and the commands need, each with the prefix `IBID_`.

    Attributes:
        store: Where app records and checkpoints are kept: in `data`, or in three DynamoDB tables.
        app_table: Of the app records; with `store=dynamodb`.
        checkpoints_table: Of the checkpoints; with `store=dynamodb`.
        writes_table: Of the checkpoints' pending writes; with `store=dynamodb`.
        bucket: Where checkpoints too large for an item go; with `store=dynamodb`, may be absent.
        create_tables: Make the tables and the bucket at the start if they are not there: for
            tests and for trying out; the template makes them otherwise.
        index: Where generations are kept.
        model: `extractive`, `openai:<model>` or `bedrock:<model id>`.
        embedder: `minilm`, `onnx:<folder>`, `openai:<model>`, `bedrock:<model id>`, or `none`
            for a purely lexical index.
        model_context: The model's context in tokens; None asks the server where it tells.
        data: Folder of the embedded stores.
        folders: Folders that an HTTP caller may name as a source, parted as a search path.
        queue_runs: URL of the SQS queue in which background runs wait for a worker; None works on
            them in the process that was asked.
        queue_events: Work on what the Lambda Web Adapter posts of that queue; only on loopback,
            where nobody but the adapter is.
        dev_principals: Let a header choose who one is; only on loopback.
        host: Address to listen on.
        port: Port to listen on; 0 takes a free one.
        ping_s: Seconds of silence after which a stream sends a comment line.
        run_timeout_s: Seconds a run may take, waiting included.
        max_runs: Running runs of this process.
        max_runs_per_tenant: Running runs of one tenant.
        max_runs_per_subject: Running runs of one subject.
        lease_term_s: Seconds without a heartbeat after which a run or a job is dead.
        clarification_s: Seconds for which a clarification can be answered.
        embed_threads: Threads of the local embedding model; 0 means one a core.
        openai_base_url: Of the OpenAI-compatible server, up to and with `/v1`; None means OpenAI.
        openai_api_key: None where the server asks for none.
    """

    model_config = SettingsConfigDict(
        env_prefix=PREFIX, frozen=True, extra="forbid", hide_input_in_errors=True
    )

    store: Literal["sqlite", "dynamodb"] = "sqlite"
    app_table: str | None = Field(default=None, min_length=3, max_length=255)
    checkpoints_table: str | None = Field(default=None, min_length=3, max_length=255)
    writes_table: str | None = Field(default=None, min_length=3, max_length=255)
    bucket: str | None = Field(default=None, min_length=3, max_length=63)
    create_tables: bool = False
    index: Literal["sqlite"] = "sqlite"
    model: Annotated[str, AfterValidator(_one_of("extractive", "openai:", "bedrock:"))] = (
        "extractive"
    )
    embedder: Annotated[
        str, AfterValidator(_one_of("minilm", "none", "onnx:", "openai:", "bedrock:"))
    ] = "minilm"
    model_context: int | None = Field(default=None, ge=512, le=10_000_000)
    data: Path = Path(".ibid")
    folders: Annotated[tuple[Path, ...], NoDecode, BeforeValidator(_folders)] = ()
    queue_runs: str | None = Field(
        default=None, pattern=r"^https?://[^/\s]+/\S+$", max_length=1_000
    )
    queue_events: bool = False
    dev_principals: bool = False
    host: str = "127.0.0.1"
    port: int = Field(default=8000, ge=0, le=65_535)
    ping_s: float = Field(default=15.0, gt=0, le=15)
    run_timeout_s: float = Field(default=180.0, gt=0, le=900)
    max_runs: int = Field(default=64, ge=1, le=10_000)
    max_runs_per_tenant: int = Field(default=8, ge=1, le=10_000)
    max_runs_per_subject: int = Field(default=2, ge=1, le=10_000)
    lease_term_s: float = Field(default=15.0, ge=0.3, le=300)
    clarification_s: float = Field(default=24 * 3600.0, gt=0, le=30 * 24 * 3600)
    embed_threads: int = Field(default=0, ge=0, le=256)
    openai_base_url: str | None = Field(default=None, validation_alias=_from_env("OPENAI_BASE_URL"))
    openai_api_key: SecretStr | None = Field(
        default=None, validation_alias=_from_env("OPENAI_API_KEY")
    )

    @model_validator(mode="after")
    def _dev_principals_stay_on_loopback(self) -> Self:
        if self.dev_principals and not is_loopback(self.host):
            raise ValueError(
                "IBID_DEV_PRINCIPALS lets anyone be anyone: it needs IBID_HOST on loopback"
            )
        return self

    @model_validator(mode="after")
    def _queue_events_come_from_this_machine(self) -> Self:
        if self.queue_events and not is_loopback(self.host):
            raise ValueError(
                "IBID_QUEUE_EVENTS takes whatever is posted for the adapter's:"
                " it needs IBID_HOST on loopback"
            )
        return self

    @model_validator(mode="after")
    def _a_cloud_store_has_its_tables(self) -> Self:
        names = ("app_table", "checkpoints_table", "writes_table")
        absent = [PREFIX + name.upper() for name in names if getattr(self, name) is None]
        if self.store == "dynamodb" and absent:
            raise ValueError(f"IBID_STORE=dynamodb needs {', '.join(absent)}")
        return self

    @property
    def tables(self) -> tuple[str, str, str]:
        """The tables of `store=dynamodb`: app records, checkpoints, pending writes."""
        return (self.app_table or "", self.checkpoints_table or "", self.writes_table or "")

    @property
    def served_hosts(self) -> tuple[str, ...]:
        """Names that a request may call a server by; on loopback a foreign one is an attack."""
        if not is_loopback(self.host):
            return ()
        return ("localhost", "127.0.0.1", "[::1]", self.host.lower())

    @property
    def beat_s(self) -> float:
        """Seconds between two heartbeats: a third of the term, so that two may be late."""
        return self.lease_term_s / 3


def is_loopback(host: str) -> bool:
    """Tell if a server on this host is reached from this machine only."""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def read_settings(environ: Mapping[str, str], **given: object) -> Settings:
    """Read the settings; what a command line gave goes before the environment.

    Args:
        environ: The process's environment, looked through for misspelt names.
        **given: Values by field name; None means not given.

    Raises:
        Misconfigured: A value is out of range, or a variable with our prefix is unknown; the
            message names each, without its value.
    """
    known = {PREFIX + name.upper() for name in Settings.model_fields} | NOT_OURS
    for name in sorted(environ):
        if name.startswith(PREFIX) and name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            hint = f"; did you mean {near[0]}?" if near else ""
            raise Misconfigured(f"There is no setting {name}{hint}")
    try:
        # reads the environment as well: the settings class has an initialiser of its own
        return Settings.model_validate(
            {name: value for name, value in given.items() if value is not None}
        )
    except ValidationError as error:
        faults = "; ".join(
            f"{PREFIX}{'.'.join(map(str, fault['loc'])).upper()}: {fault['msg']}"
            if fault["loc"]
            else str(fault["msg"]).removeprefix("Value error, ")
            for fault in error.errors(include_input=False, include_url=False)
        )
        raise Misconfigured(faults) from None
