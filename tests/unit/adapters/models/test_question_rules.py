import pytest
from hypothesis import given
from hypothesis import strategies as st

from ibid.adapters.models.question_rules import (
    LONGEST_QUERY,
    intent_of,
    search_query,
    what_is_asked_of_history,
)
from ibid.domain.answers import HistoryTurn, Intent

HISTORY = [HistoryTurn(question="Where is `parse_config` defined?", answer="In `config.py` [1].")]


@pytest.mark.parametrize(
    "question",
    [
        "Hi!",
        "Hello there",
        "Good morning, Ibid.",
        "Olá, tudo bem?",
        "¡Buenos días!",
        "Thanks!",
        "Thank you so much",
        "Great, thanks",
        "Muito obrigada!",
        "Muchas gracias",
        "Who are you?",
        "Are you a language model?",
    ],
)
def test_small_talk_is_conversational_with_or_without_a_history(question: str) -> None:
    assert intent_of(question, []) is Intent.CONVERSATIONAL
    assert intent_of(question, HISTORY) is Intent.CONVERSATIONAL


@pytest.mark.parametrize(
    "question",
    [
        "What did you just say?",
        "Shorten that",
        "Could you please summarise your last answer?",
        "Make it shorter please",
        "tl;dr",
        "Repeat that",
        "Say it again, please.",
        "What was my last question?",
        "Rephrase that in simpler terms",
        "Translate that",
        "Resume isso",
        "O que você acabou de dizer?",
        "Resúmelo",
        "¿Qué dijiste?",
    ],
)
def test_talk_about_the_answer_is_conversational_only_after_one(question: str) -> None:
    assert intent_of(question, HISTORY) is Intent.CONVERSATIONAL
    assert intent_of(question, []) is Intent.CODEBASE_QUESTION


@pytest.mark.parametrize(
    "question",
    [
        "What's the weather like in Paris?",
        "What is the weather today?",
        "Will it rain tomorrow?",
        "Write me a poem about love",
        "Tell me a joke",
        "Please tell me a joke.",
        "Give me a recipe for pancakes",
        "How do I cook rice?",
        "What is the capital of France?",
        "Who won the world cup?",
        "Escreva um poema",
        "Escribe un poema",
        "Should I buy bitcoin?",
        "¿Qué tiempo hará mañana en Lisboa?",
        "Que tempo faz no Porto?",
        "¿Cómo está el clima en Lima?",
        "Como está o tempo hoje?",
        "¿Va a llover mañana?",
        "Choverá amanhã?",
        "¿Está lloviendo?",
        "¿Cuál es el pronóstico del tiempo?",
        "Qual é a previsão do tempo?",
        "Dame una receta para tortillas",
        "Me dá uma receita de bolo",
        "¿Cómo se cocina el arroz?",
        "Como cozinhar arroz?",
        "¿Cuál es la capital de Francia?",
        "Qual é a capital da França?",
        "¿Quién ganó el mundial?",
        "Quem ganhou a copa?",
        "¿Cuál es mi horóscopo?",
        "Quem venceu a eleição?",
        "¿Debería comprar bitcoin?",
        "Devo comprar bitcoin?",
    ],
)
def test_what_is_blatantly_no_business_of_a_code_base_is_out_of_scope(question: str) -> None:
    assert intent_of(question, HISTORY) is Intent.OUT_OF_SCOPE


@pytest.mark.parametrize(
    "question",
    [
        "Where is the weather fetched?",
        "What is the weather_client's timeout?",
        "How are recipes stored?",
        "¿Qué tiempo de espera tiene la consulta?",
        "Que tempo de espera tem a consulta?",
        "¿Dónde se lee el tiempo?",
        "¿Cómo se asocia un usuario?",
        "Como assinar um cookie?",
        "Write me a poem about `parse_config`",
        "How does the greeting work?",
        "Thanks, and where is it called?",
        "Summarise the README",
        "Explain that function again",
        "Repeat the retry logic for me",
        "who are the callers",
        "hi where is main",
        "",
        "?",
    ],
)
def test_in_doubt_it_is_about_the_code(question: str) -> None:
    assert intent_of(question, HISTORY) is Intent.CODEBASE_QUESTION


def test_a_question_that_stands_alone_is_searched_as_typed() -> None:
    assert search_query("Where is  retry_policy\ndefined?", HISTORY) == (
        "Where is retry_policy defined?"
    )
    assert search_query("How does authentication of tokens work?", HISTORY) == (
        "How does authentication of tokens work?"
    )


@pytest.mark.parametrize(
    "question", ["And where is it called?", "why?", "E onde isso é chamado?", "What about tests?"]
)
def test_a_follow_up_takes_what_it_follows_along(question: str) -> None:
    assert search_query(question, HISTORY) == f"{question} parse_config"


def test_a_follow_up_of_a_follow_up_finds_the_subject() -> None:
    history = [*HISTORY, HistoryTurn(question="And where is it called?", answer="Nowhere.")]

    assert search_query("And who tests it?", history) == "And who tests it? parse_config"


def test_a_history_of_nothing_but_follow_ups_gives_its_oldest_words() -> None:
    history = [HistoryTurn(question="Why is that slow?", answer="It waits.")]

    assert search_query("And where is it?", history) == "And where is it? slow"


def test_without_identifiers_the_telling_words_are_the_subject() -> None:
    history = [HistoryTurn(question="How are retries delayed?", answer="Ever longer.")]

    assert search_query("Where is that?", history) == "Where is that? retries delayed"


def test_a_word_that_is_there_already_is_not_added() -> None:
    history = [HistoryTurn(question="How are retries delayed?", answer="Ever longer.")]

    assert search_query("Why retries? it", history) == "Why retries? it delayed"


def test_an_over_long_question_keeps_its_identifiers() -> None:
    question = "lorem " * 200 + "`parse_config`"

    query = search_query(question, [])

    assert len(query) <= LONGEST_QUERY
    assert query.startswith("parse_config")


def test_an_over_long_word_is_cut() -> None:
    assert search_query("x" * 2_000, []) == "x" * LONGEST_QUERY


@given(st.text(min_size=1, max_size=1_500).filter(str.strip), st.booleans())
def test_any_question_has_a_usable_query(question: str, follows: bool) -> None:  # noqa: FBT001 - drawn
    query = search_query(question, HISTORY if follows else [])

    assert 1 <= len(query.strip()) <= LONGEST_QUERY


@pytest.mark.parametrize(
    ("question", "wish"),
    [
        ("Hello!", "greeting"),
        ("gracias", "thanks"),
        ("What are you?", "who"),
        ("shorten your answer", "shorten"),
        ("say that again", "repeat"),
        ("what did I ask?", "asked"),
        ("rephrase that", "other"),
    ],
)
def test_a_conversational_wish_is_named(question: str, wish: str) -> None:
    assert what_is_asked_of_history(question) == wish


@pytest.mark.parametrize(
    "question",
    [
        "What does this project do?",
        "¿De qué se trata el proyecto?",
        "O que faz este projeto?",
    ],
)
def test_a_question_about_the_whole_project_searches_for_its_readme(question: str) -> None:
    assert search_query(question, []) == "`README.md`"
