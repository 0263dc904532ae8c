"""Archives of honest people, and a corpus of attacks."""

import gzip
import io
import os
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from ibid.domain.errors import SourceRejected
from ibid.indexing.archives import unpack
from ibid.indexing.extracted import TreeWriter
from ibid.indexing.skips import SkipReason
from ibid.indexing.walk import walk

Files = dict[str, bytes]


def tar_bytes(*entries: tuple[tarfile.TarInfo, bytes], packed: bool = True) -> bytes:
    body = io.BytesIO()
    with tarfile.open(fileobj=body, mode="w:gz" if packed else "w") as archive:
        for entry, data in entries:
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    return body.getvalue()


def tar_of(files: Files, *, packed: bool = True) -> bytes:
    return tar_bytes(
        *((tarfile.TarInfo(name), data) for name, data in files.items()), packed=packed
    )


def zip_of(files: Files) -> bytes:
    body = io.BytesIO()
    with zipfile.ZipFile(body, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(zipfile.ZipInfo(name), data, zipfile.ZIP_DEFLATED)
    return body.getvalue()


def unpacked(tmp_path: Path, name: str, body: bytes, **limits: int) -> TreeWriter:
    archive = tmp_path / "archive"
    archive.write_bytes(body)
    into = tmp_path / "into"
    into.mkdir()
    return unpack(archive, name, into, **limits)


def found(writer: TreeWriter) -> dict[str, bytes]:
    return {file.path: (writer.top / file.path).read_bytes() for file in walk(writer.top).files}


KINDS: dict[str, Callable[[Files], bytes]] = {
    "a.zip": zip_of,
    "a.tar": lambda files: tar_of(files, packed=False),
    "a.tar.gz": tar_of,
    "A.TGZ": tar_of,
}


@pytest.mark.parametrize("name", KINDS)
def test_files_come_out_as_they_went_in(tmp_path: Path, name: str) -> None:
    files = {"a.py": b"x = 1\r\n", "sub/b c.py": b"y", "sub/é😀.md": b"# z"}

    assert found(unpacked(tmp_path, name, KINDS[name](files))) == files


@pytest.mark.parametrize("name", KINDS)
def test_the_one_folder_that_holds_all_is_stripped(tmp_path: Path, name: str) -> None:
    body = KINDS[name]({"app-1.0/a.py": b"x", "app-1.0/sub/b.py": b"y"})

    assert found(unpacked(tmp_path, name, body)) == {"a.py": b"x", "sub/b.py": b"y"}


@pytest.mark.parametrize("name", KINDS)
def test_what_is_never_indexed_is_not_written(tmp_path: Path, name: str) -> None:
    body = KINDS[name](
        {"a.py": b"x", ".git/config": b"[core]", "big.txt": os.urandom(1_000_001), "b\tc.py": b"x"}
    )

    writer = unpacked(tmp_path, name, body)

    assert sorted(path.name for path in writer.root.iterdir()) == ["a.py"]
    assert writer.skipped == {SkipReason.TOO_LARGE: 1, SkipReason.ODD_NAME: 1}


def test_a_name_longer_than_the_system_takes_is_counted(tmp_path: Path) -> None:
    writer = unpacked(tmp_path, "a.zip", zip_of({"a.py": b"x", "y" * 300: b"y"}))

    assert found(writer) == {"a.py": b"x"}
    assert writer.skipped == {SkipReason.ODD_NAME: 1}


def test_the_finders_metadata_is_left_out(tmp_path: Path) -> None:
    writer = unpacked(tmp_path, "a.zip", zip_of({"app/a.py": b"x", "__MACOSX/app/._a.py": b"y"}))

    assert found(writer) == {"a.py": b"x"}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("../evil.py", "leaves its folder"),
        ("a/../../evil.py", "leaves its folder"),
        ("a/..", "leaves its folder"),
        ("..\\evil.py", "leaves its folder"),
        ("/etc/evil.py", "absolute"),
        ("\\evil.py", "absolute"),
        ("C:\\evil.py", "absolute"),
        ("c:/evil.py", "absolute"),
        ("/".join("d" * 150), "too deep"),
    ],
)
def test_a_path_that_climbs_refuses_the_whole_archive(
    tmp_path: Path, kind: str, name: str, why: str
) -> None:
    body = KINDS[kind]({"a.py": b"x", name: b"evil"})

    with pytest.raises(SourceRejected, match=why):
        unpacked(tmp_path, kind, body)

    assert not list(tmp_path.rglob("evil*"))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "names",
    [
        *(("a.py", "a.py"), ("a.py", "A.PY"), ("\u00e9.py", "e\u0301.py"), ("a", "a/b")),
        *(("a/b", "a"), ("x/a.py", "X/b.py"), ("a.py", "./a.py")),
    ],
)
@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_two_entries_in_one_place_refuse_the_archive(
    tmp_path: Path, kind: str, names: tuple[str, str]
) -> None:
    body = io.BytesIO()
    if kind == "a.zip":
        with zipfile.ZipFile(body, "w") as archive:
            for name in names:
                archive.writestr(zipfile.ZipInfo(name), b"x")
        made = body.getvalue()
    else:
        made = tar_bytes(*((tarfile.TarInfo(name), b"x") for name in names), packed=kind != "a.tar")

    with pytest.raises(SourceRejected, match="two entries in one place"):
        unpacked(tmp_path, kind, made)


@pytest.mark.parametrize(
    "kind",
    [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE, b"V"],
)
def test_a_link_or_a_device_refuses_a_tar(tmp_path: Path, kind: bytes) -> None:
    entry = tarfile.TarInfo("link")
    entry.type, entry.linkname = kind, "/etc/passwd"

    with pytest.raises(SourceRejected, match="a link or a special file: 'link'"):
        unpacked(tmp_path, "a.tar", tar_bytes((entry, b""), packed=False))


def test_a_link_refuses_a_zip(tmp_path: Path) -> None:
    body = io.BytesIO()
    with zipfile.ZipFile(body, "w") as archive:
        entry = zipfile.ZipInfo("link")
        entry.external_attr = 0o120777 << 16
        archive.writestr(entry, "/etc/passwd")

    with pytest.raises(SourceRejected, match="a link or a special file: 'link'"):
        unpacked(tmp_path, "a.zip", body.getvalue())


def test_an_encrypted_zip_is_refused(tmp_path: Path) -> None:
    body = bytearray(zip_of({"a.py": b"x"}))
    body[body.index(b"PK\x01\x02") + 8] |= 1

    with pytest.raises(SourceRejected, match=r"an encrypted entry: 'a\.py'"):
        unpacked(tmp_path, "a.zip", bytes(body))


@pytest.mark.parametrize("kind", KINDS)
def test_more_bytes_than_allowed_are_refused_as_they_come(tmp_path: Path, kind: str) -> None:
    body = KINDS[kind]({f"{n}.txt": os.urandom(10_000) for n in range(10)})

    with pytest.raises(SourceRejected, match="more than 50,000 bytes"):
        unpacked(tmp_path, kind, body, max_total_bytes=50_000)


@pytest.mark.parametrize("kind", ["a.zip", "a.tgz"])
def test_a_bomb_is_refused_by_its_ratio(tmp_path: Path, kind: str) -> None:
    files = {f"{n}.txt": bytes(5_000_000) for n in range(8)}
    body = zip_of(files) if kind == "a.zip" else tar_of(files)

    with pytest.raises(SourceRejected, match="as a bomb is"):
        unpacked(tmp_path, kind, body)


@pytest.mark.parametrize("kind", KINDS)
def test_too_many_entries_are_refused(tmp_path: Path, kind: str) -> None:
    body = KINDS[kind]({f"{n}.txt": b"" for n in range(20)})

    with pytest.raises(SourceRejected, match="too many entries"):
        unpacked(tmp_path, kind, body, max_entries=10)


def test_a_huge_header_is_refused_before_it_is_read(tmp_path: Path) -> None:
    entry = tarfile.TarInfo("././@LongLink")
    entry.type = tarfile.GNUTYPE_LONGNAME

    with pytest.raises(SourceRejected, match="header of more than 1 MB"):
        unpacked(tmp_path, "a.tar", tar_bytes((entry, b"x" * 2_000_000), packed=False))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("cut", [0, 1, 30, 0.5])
def test_a_damaged_archive_is_refused(tmp_path: Path, kind: str, cut: float) -> None:
    body = KINDS[kind]({"a.py": os.urandom(20_000)})
    kept = int(cut * len(body)) if isinstance(cut, float) else cut

    with pytest.raises(SourceRejected):
        unpacked(tmp_path, kind, body[:kept])


def test_noise_in_a_zip_is_refused(tmp_path: Path) -> None:
    body = bytearray(zip_of({"a.py": b"hello " * 500}))
    body[40:60] = os.urandom(20)

    with pytest.raises(SourceRejected):
        unpacked(tmp_path, "a.zip", bytes(body))


def test_an_unknown_packing_is_refused(tmp_path: Path) -> None:
    body = bytearray(zip_of({"a.py": b"x"}))
    for mark, at in ((b"PK\x03\x04", 8), (b"PK\x01\x02", 10)):
        body[body.index(mark) + at] = 97

    with pytest.raises(SourceRejected, match="not supported"):
        unpacked(tmp_path, "a.zip", bytes(body))


@pytest.mark.parametrize("name", ["a.rar", "a.tar.bz2", "zip", "a.gz", ""])
def test_another_kind_of_file_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(SourceRejected, match=r"none of \.zip"):
        unpacked(tmp_path, name, gzip.compress(b"x"))


def test_a_sparse_tar_is_refused(tmp_path: Path) -> None:
    entry = tarfile.TarInfo("sparse")
    entry.pax_headers = {"GNU.sparse.major": "1", "GNU.sparse.minor": "0"}
    entry.pax_headers |= {"GNU.sparse.name": "s", "GNU.sparse.realsize": "100000000000"}
    data = b"1\n0\n1\n".ljust(512, b"\0") + b"x"

    with pytest.raises(SourceRejected, match="special file"):
        unpacked(tmp_path, "a.tar", tar_bytes((entry, data), packed=False))


def test_a_file_without_a_name_is_refused(tmp_path: Path) -> None:
    into = tmp_path / "into"
    into.mkdir()

    with pytest.raises(SourceRejected, match="without a name"):
        TreeWriter(into, what="archive").write("./", io.BytesIO(b"x"))
