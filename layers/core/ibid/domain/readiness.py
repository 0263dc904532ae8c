"""Can a project be asked?"""

from ibid.domain.errors import EmbeddingModelChanged, ProjectNotReady
from ibid.domain.projects import Project


def check_ready(project: Project, *, embedding_signature: str | None) -> int:
    """Return the generation that a turn on the project searches.

    Args:
        project: As it is kept now.
        embedding_signature: Of the embedder in use; None where there is none.

    Raises:
        ProjectNotReady: It has no generation yet.
        EmbeddingModelChanged: Its vectors come from another model than the one in use.
    """
    if project.active_generation is None:
        raise ProjectNotReady(f"Project {project.id!r} is {project.status}: index it first")
    if project.embedding_signature not in {None, embedding_signature}:
        raise EmbeddingModelChanged(
            f"Project {project.id!r} was indexed with {project.embedding_signature!r}, "
            f"but {embedding_signature!r} is in use: index it again or change IBID_EMBEDDER"
        )
    return project.active_generation
