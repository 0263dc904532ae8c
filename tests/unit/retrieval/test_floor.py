import pytest

from ibid.ports.index import Candidates
from ibid.retrieval.floor import MIN_COSINE, Floor, identifiers, names
from ibid.retrieval.question import read_question
from tests.unit.retrieval.corpus import candidate, chunk


def floor(question: str, known: dict[str, int], *, chunks: int = 1_000) -> Floor:
    found = Candidates(items=[], top_bm25=[], document_frequency=known, chunk_count=chunks)
    return Floor(read_question(question, main_language="english"), found)


def holds(under: Floor, content: str, *, path: str = "a.py", cosine: float = 0.0) -> bool:
    return under.holds(candidate(chunk(path, content), bm25=1.0, cosine=cosine))


def test_a_near_candidate_is_above_whatever_its_words() -> None:
    under = floor("bananas", {})

    assert holds(under, "x", cosine=MIN_COSINE)
    assert not holds(under, "x", cosine=MIN_COSINE - 0.001)


@pytest.mark.parametrize(
    ("question", "spelt"),
    [
        ("What does get_user_name do?", ["get_user_nam"]),
        ("What does getUserName do?", ["getusernam"]),
        ("Where is `retry` set?", ["retri"]),
        ("What happens in close()?", ["close"]),
        ("Why does flask.Config.from_object fail?", ["flask", "config", "from_object"]),
        ("Is sha256 used?", ["sha256"]),
        ("Is it in app.py?", ["app"]),
        ("How are the requests retried at 3 pm? E.g. twice. Iff x/y or `a b`.", []),
    ],
)
def test_an_identifier_is_told_by_its_spelling(question: str, spelt: list[str]) -> None:
    assert identifiers(read_question(question, main_language="english")) == spelt


def test_an_identifier_that_the_question_spells_is_enough() -> None:
    words = "Could the gardener in Paris who met get_user tell whether it rained on Sunday morning?"
    under = floor(words, {"get_us": 400, "get": 900, "user": 900})

    assert holds(under, "def get_user(): ...")
    assert not holds(under, "def get(user): ...")


def test_a_words_worth_that_no_other_chunk_holds_is_enough_from_two_on() -> None:
    question = "How do gardeners prune roses and tulips while a zeppelin lands on monday evening?"
    under = floor(question, {"prune": 1, "tulip": 1, "rose": 1, "even": 900})

    assert holds(under, "prune(tulip)")
    assert not holds(under, "prune()")
    assert not holds(under, "even = 2")


def test_most_of_a_short_question_is_enough() -> None:
    under = floor("the session cookie", {"session": 300, "cooki": 200})

    assert holds(under, "session.cookies")
    assert not holds(under, "session")


def test_a_path_is_searched_like_the_text() -> None:
    assert holds(floor("zeppelins", {"zeppelin": 2}), "x = 1", path="lib/zeppelin.py")


def test_function_words_of_any_language_are_no_evidence() -> None:
    under = floor("donde está la salida", {"dond": 1, "la": 1, "salida": 0})

    assert not holds(under, "la donde")


def test_a_question_of_function_words_finds_nothing_by_words() -> None:
    assert not holds(floor("what is it?", {"what": 3}), "what is it")


def test_a_candidate_that_no_word_led_to_needs_its_cosine() -> None:
    under = floor("zeppelins", {"zeppelin": 2})

    assert not under.holds(candidate(chunk(content="zeppelin"), bm25=0.0))


def test_tiny_generations_have_a_floor_as_well() -> None:
    under = floor("How is the parser installed?", {"parser": 1, "instal": 1}, chunks=2)

    assert holds(under, "install the parser")
    assert not holds(floor("bananas", {"banana": 0}, chunks=1), "x = 1")


@pytest.mark.parametrize(
    "question",
    [
        "¿Dónde se define la clase Blueprint?",
        "Onde é definido o tipo Blueprint?",
        "¿Qué señales emite Blueprint?",
        "Onde está implementado o tipo (Blueprint)?",
    ],
)
def test_a_foreign_question_is_above_by_the_name_it_spells(question: str) -> None:
    under = floor(question, {"blueprint": 5})

    assert holds(under, "class Blueprint:")
    assert not holds(under, "class Flask:")


def test_a_foreign_question_needs_two_known_words_or_one_that_the_corpus_is_about() -> None:
    capital = floor("¿Cuál es la capital de australia?", {"capit": 3})
    cookie = floor("¿Dónde se gestionan las cookies?", {"cooki": 80})
    both = floor("¿Qué formato json tiene la cookie?", {"json": 9, "cooki": 9})

    assert not holds(capital, "capital")
    assert holds(cookie, "cookies = 1")
    assert holds(both, "json.cookie")
    assert not holds(both, "json")


def test_no_word_of_a_tiny_generation_is_what_it_is_about() -> None:
    assert not holds(floor("¿Cuál es la capital?", {"capit": 1}, chunks=9), "capital")


def test_words_that_the_index_lacks_count_against_a_passage_in_its_own_language() -> None:
    assert not holds(floor("Where is the capital of the vast Blueprint?", {"capit": 3}), "capital")


def test_long_questions_take_no_time() -> None:
    for unit in ("a", "a.", "a(", "`", "aB", "_", "a B", "A"):
        question = read_question(unit * (100_000 // len(unit)), main_language="english")
        identifiers(question)
        names(question)
