"""One source's files, read twice: first to see what is there, then to cut it into chunks."""

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from ibid.domain.passages import Chunk
from ibid.indexing.chunking import CHUNKER_VERSION, chunk_file
from ibid.indexing.documents import Document, digest_of, document_of, read_bytes
from ibid.indexing.fetched import Fetched
from ibid.indexing.languages import TEXT, language_of
from ibid.indexing.skips import SkipReason
from ibid.indexing.walk import FoundFile, walk

PROSE = frozenset({"markdown", "rst", TEXT})
MAX_SAMPLES = 400
SAMPLE_CHARACTERS = 4_000
_COMMENT = re.compile(r"^\s*(?:#|//|/?\*|--|%)[\s*!/#-]*(\w.*)$", re.MULTILINE)


@dataclass(slots=True)
class Survey:
    """What a first reading found.

    Attributes:
        files: Those with text to index, by path, in code point order.
        skipped: What is left out, by reason.
        samples: Prose, and the comments of code, to tell the language of.
        commit_sha: The source's commit, if it holds at least one of the files as it is.
    """

    files: list[FoundFile] = field(default_factory=list)
    skipped: Counter[SkipReason] = field(default_factory=Counter)
    samples: list[str] = field(default_factory=list)
    commit_sha: str | None = None


class SourceDigest:
    """Digests all that decides a generation: the files, the chunker, the embedder."""

    def __init__(self) -> None:
        self._hash = hashlib.sha256(f"chunker {CHUNKER_VERSION}\n".encode())

    def add(self, path: str, digest: str) -> None:
        """Take in the next file, in the order of the paths."""
        self._hash.update(f"{path}\0{digest}\n".encode())

    def with_embedder(self, signature: str | None) -> str:
        """Return the digest in hex of what has come so far and of an embedder."""
        whole = self._hash.copy()
        whole.update(f"embedder {signature or ''}".encode())
        return whole.hexdigest()


class Corpus:
    """A fetched source's files. Every method blocks: call them in a thread, one at a time.

    Args:
        fetched: Where the files are.
        chunked: Cuts a document.
    """

    def __init__(
        self,
        fetched: Fetched,
        chunked: Callable[[Document], tuple[Sequence[Chunk], str | None]] | None = None,
    ) -> None:
        self._fetched = fetched
        self._chunked = chunked or _chunked
        self.survey = Survey(skipped=Counter(fetched.skipped))

    def find(self) -> list[FoundFile]:
        """Walk the source; what is found is still to be surveyed."""
        walked = walk(self._fetched.root)
        self.survey.skipped.update(walked.skipped)
        return walked.files

    def look_at(self, files: Sequence[FoundFile], digest: SourceDigest) -> None:
        """Survey the next files: which have text, in what language, and their digest."""
        for file in files:
            document = self._read(file, digest)
            if isinstance(document, SkipReason):
                self.survey.skipped[document] += 1
                continue
            self.survey.files.append(file)
            if document.commit_sha is not None:
                self.survey.commit_sha = document.commit_sha
            if len(self.survey.samples) < MAX_SAMPLES and (sample := _sample(document)):
                self.survey.samples.append(sample)

    def chunks(self, digest: SourceDigest, fallbacks: Counter[str]) -> Iterator[Sequence[Chunk]]:
        """Cut the surveyed files, read again: what was changed meanwhile is as it is now.

        Yields:
            One file's chunks after the other, by path; files without a line of text left out.
        """
        for file in self.survey.files:
            document = self._read(file, digest)
            if isinstance(document, SkipReason):
                continue
            chunks, fallback = self._chunked(document)
            if fallback is not None:
                fallbacks[fallback] += 1
            if chunks:
                yield chunks

    def _read(self, file: FoundFile, digest: SourceDigest) -> Document | SkipReason:
        data = read_bytes(self._fetched.root, file)
        if data is None:
            return SkipReason.UNREADABLE
        document = document_of(file.path, data, self._fetched.head)
        if isinstance(document, Document):
            digest.add(file.path, digest_of(data, document.commit_sha))
        return document


def _chunked(document: Document) -> tuple[Sequence[Chunk], str | None]:
    done = chunk_file(document.path, document.text, commit_sha=document.commit_sha)
    return done.chunks, done.fallback


def _sample(document: Document) -> str:
    """Take the prose of a file's beginning; empty if it has none."""
    beginning = document.text[:SAMPLE_CHARACTERS]
    if language_of(document.path, beginning.partition("\n")[0]) in PROSE:
        return beginning
    return "\n".join(_COMMENT.findall(beginning))
