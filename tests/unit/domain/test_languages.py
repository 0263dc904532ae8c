import pytest

from ibid.domain.languages import detect, most_spoken


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("How does the session that is opened by the client end?", "english"),
        ("¿Cómo se abre la sesión del cliente y quién la cierra?", "spanish"),
        ("Como é que a sessão do cliente não fecha quando o servidor cai?", "portuguese"),
        ("Comment est-ce que la session du client se ferme dans les tests?", "french"),
        ("Wie wird die Sitzung des Clients von der Anwendung geschlossen?", "german"),
        ("Come si chiude la sessione del client e quando non è più aperta?", "italian"),
    ],
)
def test_six_languages_are_told_by_their_function_words(text: str, language: str) -> None:
    assert detect(text) == language


@pytest.mark.parametrize(
    "text", ["如何关闭会话", "Как закрыть сессию", "セッションを閉じる", "كيف تغلق"]
)
def test_another_script_is_no_language_of_the_lists(text: str) -> None:
    assert detect(text) == "other"


def test_identifiers_leave_the_main_language_as_it_is() -> None:
    assert detect("un.close(x)", main="english") == "english"
    assert detect("Session.close()", main="spanish") == "spanish"
    assert detect("", main="german") == "german"
    assert detect("1 + 2 = _", main="other") == "other"


def test_another_language_must_lead_by_two_words() -> None:
    assert detect("el of", main="english") == "english"
    assert detect("el los", main="english") == "spanish"
    assert detect("the of", main="other") == "english"


def test_most_texts_decide_the_main_language() -> None:
    spanish = "la sesión se cierra y el cliente lo sabe"

    assert most_spoken([spanish, spanish, "the end of the session"]) == "spanish"
    assert most_spoken([spanish, "the end of the session"]) == "english"
    assert most_spoken([]) == "english"
