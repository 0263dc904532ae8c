"""Where an uploaded archive lies in the object store."""

import hashlib


def upload_prefix(*, tenant: str, project_id: str, upload_id: str | None = None) -> str:
    """Return the prefix of one upload's key, or of all the project's; it ends in `/`.

    The tenant is hashed, since it may hold what a key's segment may not.
    """
    owner = hashlib.sha256(tenant.encode()).hexdigest()[:32]
    prefix = f"{owner}/uploads/{project_id}/"
    return prefix if upload_id is None else f"{prefix}{upload_id}/"


def upload_key(*, tenant: str, project_id: str, upload_id: str, file_name: str) -> str:
    """Return the key of an upload's archive; `file_name` is one segment with its extension."""
    return upload_prefix(tenant=tenant, project_id=project_id, upload_id=upload_id) + file_name
