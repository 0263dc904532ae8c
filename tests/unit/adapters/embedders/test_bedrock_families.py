import pytest

from ibid.adapters.embedders.bedrock_families import family_of
from ibid.domain.errors import Misconfigured


def test_titan_2_takes_one_text_and_a_width() -> None:
    titan = family_of("amazon.titan-embed-text-v2:0")

    assert titan.body(["a text"], "query") == {
        "inputText": "a text",
        "dimensions": 1_024,
        "normalize": True,
    }
    assert titan.rows({"embedding": [1.0, 2.0]}) == [[1.0, 2.0]]
    assert titan.limits.max_texts == 1


def test_titan_1_takes_the_text_alone() -> None:
    assert family_of("amazon.titan-embed-text-v1").body(["a"], "passage") == {"inputText": "a"}


def test_cohere_3_tells_questions_from_passages() -> None:
    cohere = family_of("cohere.embed-multilingual-v3")

    assert cohere.body(["a", "b"], "passage") == {
        "texts": ["a", "b"],
        "input_type": "search_document",
        "truncate": "END",
        "embedding_types": ["float"],
    }
    assert cohere.body(["a"], "query")["input_type"] == "search_query"
    assert cohere.rows({"embeddings": [[1.0]]}) == [[1.0]]
    assert cohere.rows({"embeddings": {"float": [[1.0]]}}) == [[1.0]]
    assert cohere.languages == frozenset()


def test_cohere_4_is_asked_for_its_width() -> None:
    body = family_of("us.cohere.embed-v4:0").body(["a"], "query")

    assert (body["output_dimension"], body["truncate"]) == (1_536, "RIGHT")


def test_region_and_account_are_not_in_the_vector_space() -> None:
    arn = "arn:aws:bedrock:eu-west-1:123456789012:inference-profile/eu.cohere.embed-v4:0"

    spaces = {
        family_of(model).space(model)
        for model in (arn, "us.cohere.embed-v4:0", "cohere.embed-v4:0")
    }

    assert spaces == {"cohere.embed-v4:0"}
    assert family_of("amazon.titan-embed-text-v2:0").space("amazon.titan-embed-text-v2:0") == (
        "amazon.titan-embed-text-v2:0"
    )


def test_another_model_is_refused_with_the_known_ones() -> None:
    with pytest.raises(Misconfigured, match=r"amazon\.titan-embed-text-v2"):
        family_of("anthropic.claude-sonnet")
