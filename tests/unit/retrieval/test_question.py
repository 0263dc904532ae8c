from ibid.retrieval.question import PAIR_WEIGHT, read_question


def test_words_weigh_by_their_number_and_pairs_less() -> None:
    question = read_question("Retry a retry of the request", main_language="english")

    assert question.terms() == {
        "retri": 2,
        "request": 1,
        "retri retri": PAIR_WEIGHT,
        "retri request": PAIR_WEIGHT,
    }


def test_a_question_is_analysed_as_the_chunks_were_whatever_its_language() -> None:
    question = read_question("¿Cómo se cierran las sesiones?", main_language="english")

    assert (question.language, question.main_language) == ("spanish", "english")
    assert "sesion" in " ".join(question.words)


def test_stop_words_alone_ask_for_nothing() -> None:
    question = read_question("is it not?", main_language="english")

    assert question.words == []
    assert question.terms() == {}
