"""The command `ibid`: serve, index, ask, projects, fsck."""

from pathlib import Path
from typing import Annotated

import typer

from ibid.cli.failures import failures_told

app = typer.Typer(
    name="ibid",
    help="Answers questions about a team's code and documents with citations that were checked.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,  # a traceback with locals could show a question
)

Data = Annotated[
    Path | None,
    typer.Option(help="Folder of the embedded stores (IBID_DATA, else .ibid).", show_default=False),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for a script to read.")]


@app.command()
def serve(
    data: Data = None,
    host: Annotated[str | None, typer.Option(help="Address to listen on.")] = None,
    port: Annotated[int | None, typer.Option(help="Port; 0 takes a free one.")] = None,
    index: Annotated[
        str | None, typer.Option(help="Index this folder, archive or https git URL as well.")
    ] = None,
    name: Annotated[str | None, typer.Option(help="The project's name for --index.")] = None,
) -> None:
    """Serve HTTP until SIGTERM or Ctrl-C."""
    from ibid.cli.serve import serve_until_stopped

    with failures_told():
        serve_until_stopped(data=data, host=host, port=port, source=index, name=name)


@app.command()
def index(
    source: Annotated[str, typer.Argument(help="A folder, an archive, or an https git URL.")],
    data: Data = None,
    name: Annotated[
        str | None, typer.Option(help="The project's name (else the source's).")
    ] = None,
    force: Annotated[bool, typer.Option(help="Index again, changed or not.")] = False,
    as_json: Json = False,
) -> None:
    """Index a code base as a project, or index it again."""
    from ibid.cli.index import index_source

    with failures_told():
        done = index_source(source, data=data, name=name, force=force, as_json=as_json)
    raise typer.Exit(0 if done else 1)


@app.command()
def ask(
    question: Annotated[str, typer.Argument(help="What to ask, 1 to 4,000 characters.")],
    data: Data = None,
    project: Annotated[
        str | None, typer.Option(help="The project's name or id; needed if there are several.")
    ] = None,
    path_prefix: Annotated[
        str | None, typer.Option(help="Search only files whose path starts with this.")
    ] = None,
    reply_language: Annotated[
        str | None, typer.Option(help="en, pt-BR or es-419 (else the project's, else en).")
    ] = None,
    as_json: Json = False,
) -> None:
    """Ask a question; exits with 0 only if the answer ended as it should."""
    from ibid.cli.ask import ask_question

    with failures_told():
        stopped = ask_question(
            question,
            data=data,
            project=project,
            path_prefix=path_prefix,
            reply_language=reply_language,
            as_json=as_json,
        )
    raise typer.Exit(0 if stopped else 1)


@app.command()
def projects(data: Data = None, as_json: Json = False) -> None:
    """List the projects."""
    from ibid.cli.projects import list_projects

    with failures_told():
        list_projects(data=data, as_json=as_json)


@app.command()
def fsck(data: Data = None, as_json: Json = False) -> None:
    """Check all that the stores hold; exits with 0 if nothing is wrong, 1 if anything is."""
    from ibid.cli.fsck import check_stores

    with failures_told():
        is_clean = check_stores(data=data, as_json=as_json)
    raise typer.Exit(0 if is_clean else 1)
