"""Keys of the app table: pure functions, the only place that knows how its items are laid out.

    partition                      range                what
    T#tenant#P#project             A                    the project; `job` is its live job
                                   C#conversation       a pointer to a conversation of it
                                   J#time#job           a pointer to a job of it
    T#tenant#J#job                 A                    the job
    T#tenant#M#subject             P#time#project       a pointer to a project, for its member
    T#tenant#S#subject             C#time#conversation  a pointer to a conversation, for its asker
    T#tenant#C#conversation        F#run#subject        a rating
                                   R#run                a run with its question and its answer
                                   ~                    the conversation
    T#tenant#C#conversation#J#run  S#slot               a batch of the run's journal, or a marker
                                   P#name#part          a part of a batch or of an answer
    T#tenant#I#record              A                    an idempotency record
                                   P#name#part          a part of its answer
    LIVE                           T#tenant             the tenant's live runs
    JOBS                           T#tenant#job         a pointer to a live job
    SCHEMA                         A                    the table's schema

Every partition but the last three begins with a tenant. A conversation sorts above its runs, and
they above its ratings: one query from the top meets it, then the newest run, then the one before.
"""

import hashlib

Key = tuple[str, str]

FACTS = "A"
CONVERSATION_FACTS = "~"
LIVE = "LIVE"
JOBS = "JOBS"
SCHEMA: Key = ("SCHEMA", FACTS)

CONVERSATIONS = "C#"
JOBS_OF_PROJECT = "J#"
PROJECTS = "P#"
RATINGS = "F#"
RUNS = "R#"
SLOTS = "S#"

PAUSES = "PAUSES"  # the one value of the index of pauses

_PART_BYTES = 400  # of a name, so that two in a partition and one in a range key fit
_NUMBER_DIGITS = 16
_MOMENT_DIGITS = 20
_MOMENT_BASE = 10**19  # moves times before 1970 above 0


def part(text: str) -> str:
    """Return any text as a part of a key: without `#`, not too long, and no two alike."""
    try:
        plain = text.replace("%", "%25").replace("#", "%23")
        if len(plain.encode()) <= _PART_BYTES:
            return plain
    except UnicodeEncodeError:  # half a surrogate pair
        pass
    return "%%" + hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def number(value: int) -> str:
    """Return a number from 0 so that text sorts as numbers do."""
    return f"{value:0{_NUMBER_DIGITS}d}"


def moment(microseconds: int) -> str:
    """Return a time since 1970, before it too, so that text sorts as times do."""
    return f"{microseconds + _MOMENT_BASE:0{_MOMENT_DIGITS}d}"


def dated(prefix: str, microseconds: int, name: str) -> str:
    """Return a range key that sorts by time, then by the bytes of the name."""
    return f"{prefix}{moment(microseconds)}#{_last_part(name)}"


def project(tenant: str, project_id: str) -> Key:
    """Return a project's key."""
    return f"T#{part(tenant)}#P#{part(project_id)}", FACTS


def project_conversation(conversation_id: str) -> str:
    """Return the range key of a pointer in a project's partition."""
    return CONVERSATIONS + part(conversation_id)


def member(tenant: str, subject: str) -> str:
    """Return the partition of the pointers to a member's projects."""
    return f"T#{part(tenant)}#M#{part(subject)}"


def job(tenant: str, job_id: str) -> Key:
    """Return a job's key."""
    return f"T#{part(tenant)}#J#{part(job_id)}", FACTS


def live_job(tenant: str, job_id: str) -> Key:
    """Return the key of the pointer to a live job."""
    return JOBS, f"T#{part(tenant)}#{part(job_id)}"


def asker(tenant: str, subject: str) -> str:
    """Return the partition of the pointers to a subject's conversations."""
    return f"T#{part(tenant)}#S#{part(subject)}"


def conversation(tenant: str, conversation_id: str) -> Key:
    """Return a conversation's key."""
    return f"T#{part(tenant)}#C#{part(conversation_id)}", CONVERSATION_FACTS


def run(tenant: str, conversation_id: str, run_number: int) -> Key:
    """Return a run's key."""
    return conversation(tenant, conversation_id)[0], RUNS + number(run_number)


def rating(tenant: str, conversation_id: str, run_number: int, subject: str) -> Key:
    """Return the key of a subject's rating of a run."""
    partition = conversation(tenant, conversation_id)[0]
    return partition, f"{RATINGS}{number(run_number)}#{part(subject)}"


def journal(tenant: str, conversation_id: str, run_number: int) -> str:
    """Return the partition of a run's journal."""
    return f"{conversation(tenant, conversation_id)[0]}#J#{number(run_number)}"


def slot(value: int) -> str:
    """Return the range key of a place in a journal."""
    return SLOTS + number(value)


def split_part(name: str, index: int) -> str:
    """Return the range key of a part of something that is too large for one item."""
    return f"P#{name}#{number(index)}"


def idempotency(tenant: str, record_id: str) -> Key:
    """Return an idempotency record's key."""
    return f"T#{part(tenant)}#I#{part(record_id)}", FACTS


def live_runs(tenant: str) -> Key:
    """Return the key of a tenant's live runs."""
    return LIVE, f"T#{part(tenant)}"


def _last_part(text: str) -> str:
    """Return a text as the last part of a range key, which sorts as the text's bytes do."""
    try:
        if len(text.encode()) <= 2 * _PART_BYTES:
            return text
    except UnicodeEncodeError:
        pass
    return part(text)
