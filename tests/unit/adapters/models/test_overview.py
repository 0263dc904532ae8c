from ibid.adapters.models.overview import describing_units
from ibid.domain.passages import Passage


def readme(content: str, *, start: int = 1, path: str = "README.md") -> Passage:
    return Passage(
        file_path=path,
        start_line=start,
        end_line=start + content.count("\n"),
        language="markdown",
        symbol="",
        content=content,
        commit_sha=None,
        score=1.0,
        cosine=None,
    )


WORDS = "A shop for those who like to try things."


def test_the_earliest_paragraph_of_words_describes() -> None:
    later = readme(f"{WORDS} Later.", start=20)
    first = readme(f"# Shop\n\nTo install it, run this right away:\n\n```sh\nx\n```\n\n{WORDS}")

    for passages in ([later, first], [first, later]):
        assert [unit.text for unit in describing_units(passages)] == [WORDS]


def test_a_late_paragraph_or_badges_or_a_part_s_readme_do_not() -> None:
    assert describing_units([readme(WORDS, start=31)]) == []
    assert describing_units([readme("[![a b](c)](d) <img alt='a b c d e f g'> https://a.b")]) == []
    assert describing_units([readme(WORDS, path="part/README.md")]) == []
