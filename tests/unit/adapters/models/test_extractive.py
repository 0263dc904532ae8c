"""The extractive answerer over a small project of its own: golden answers, what always holds."""

import re
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ibid.adapters.models.extractive import ExtractiveModel
from ibid.domain.answers import GroundingWarning, HistoryTurn, Style
from ibid.domain.passages import Passage
from ibid.graphs.answer.citations import check_citations
from ibid.graphs.answer.markdown import split_blocks
from ibid.graphs.answer.warnings import grounding_warnings
from ibid.ports.models import ModelRequest, ReplyEnd, TextDelta

CART = '''\
"""Carts of the shop."""

MAX_ITEMS = 50


@dataclass
class Cart:
    """What one customer is about to buy."""

    items: list[Item]

    def add_item(self, item: Item) -> None:
        """Put an item into the cart.

        Raises:
            CartFull: It holds MAX_ITEMS already.
        """
        if len(self.items) >= MAX_ITEMS:
            raise CartFull(self)
        self.items.append(item)

    def total(self) -> Money:
        """Sum the prices of all items, discounts taken off."""
        return sum_prices(self.items) - self.discount()'''
README = """\
# Shop

A small shop, to try things out.

## Configuration

The settings are read from `shop.toml` when the server starts.
A missing file means the defaults.

## Deployment

- Build the image with `make image`.
- Roll it out; see [the guide](docs/rollout.md) [1].

```bash
make image
make deploy STAGE=test
```"""
CLIENT = """\
export function retryPolicy(attempts) {
  // wait longer each time
  return attempts.map((n) => 2 ** n);
}

const DEFAULT_TIMEOUT = 30;"""


def passage(path: str, content: str, language: str, start: int = 1) -> Passage:
    return Passage(
        file_path=path,
        start_line=start,
        end_line=start + content.count("\n"),
        language=language,
        symbol="",
        content=content,
        commit_sha=None,
        score=1.0,
        cosine=None,
    )


PASSAGES = [
    passage("shop/cart.py", CART, "python"),
    passage("README.md", README, "markdown"),
    passage("web/client.js", CLIENT, "javascript", start=10),
]


async def reply(request: ModelRequest) -> str:
    items = [item async for item in ExtractiveModel().stream(request)]
    assert items[-1] == ReplyEnd(input_tokens=None, output_tokens=None)
    pieces = [item.text for item in items if isinstance(item, TextDelta)]
    assert len(pieces) == len(items) - 1
    assert all(pieces)
    return "".join(pieces)


async def answer(
    question: str,
    passages: Sequence[Passage] = PASSAGES,
    style: Style | None = None,
    language: str = "en",
    gap: str = "",
) -> str:
    return await reply(
        ModelRequest(
            task="answer",
            messages=(),
            question=question,
            passages=passages,
            style=style or Style(),
            reply_language=language,
            gap=gap,
        )
    )


LEAD = "Quoted from the project by rules, not written by a language model:\n\n"
GOLDEN = {
    "Where is add_item defined?": (
        "`add_item` is defined at `shop/cart.py:12-20` [1]:\n\n```python\n"
        + "\n".join(CART.split("\n")[11:20])
        + "\n```"
    ),
    "How are the settings read?": (
        "`README.md:7-8` [2]:\n\n"
        "> The settings are read from `shop.toml` when the server starts.\n"
        "> A missing file means the defaults."
    ),
    "What does retryPolicy do?": (
        "`retryPolicy` is defined at `web/client.js:10-13` [3]:\n\n```javascript\n"
        + "\n".join(CLIENT.split("\n")[:4])
        + "\n```"
    ),
    "What is the DEFAULT_TIMEOUT?": (
        "`DEFAULT_TIMEOUT` is defined at `web/client.js:15-15` [3]:\n\n"
        "```javascript\nconst DEFAULT_TIMEOUT = 30;\n```"
    ),
    "How do I deploy to a stage?": (
        "`README.md:16-17` [2]:\n\n```bash\nmake image\nmake deploy STAGE=test\n```"
    ),
}


@pytest.mark.parametrize("question", GOLDEN)
async def test_a_question_is_answered_by_what_the_project_says(question: str) -> None:
    text = await answer(question)

    assert text == LEAD + GOLDEN[question]


@pytest.mark.parametrize("question", GOLDEN)
@pytest.mark.parametrize("detail", ["brief", "thorough", None])
@pytest.mark.parametrize("form", ["bullets", "prose"])
async def test_an_answer_is_cited_and_warned_of_nothing(
    question: str, detail: str | None, form: str
) -> None:
    text = await answer(question, style=Style(detail=detail, format=form))  # type: ignore[arg-type]  # the parameters are the dial's

    cited = check_citations(text, PASSAGES)
    assert cited
    assert not grounding_warnings(
        text,
        PASSAGES,
        searched=True,
        cited_indexes=cited,
        evidence_ok=True,
        question=question,
        history=(),
    )


async def test_the_parts_of_a_question_are_answered_in_its_order() -> None:
    text = await answer("What does retryPolicy do, and where is add_item defined?")

    assert text.index("`retryPolicy` is defined") < text.index("`add_item` is defined")


async def test_where_a_thing_is_names_its_definitions_alone_but_its_uses_when_asked() -> None:
    use = passage("main.py", "cart.add_item(item)\nadd_item = None", "python")

    place = await answer("Where is `Cart.add_item`?", passages=[use, *PASSAGES])
    uses = await answer("Where is add_item used?", passages=[use, *PASSAGES])

    assert check_citations(place, [use, *PASSAGES]) == (2,)
    assert check_citations(uses, [use, *PASSAGES]) == (1, 2)


async def test_bullets_quote_one_telling_line_each() -> None:
    text = await answer("Where is add_item defined?", style=Style(format="bullets"))

    assert text == LEAD + (
        "- `def add_item(self, item: Item) -> None:`: Put an item into the cart. "
        "(`shop/cart.py:12-13` [1])"
    )


async def test_brief_quotes_less_than_thorough() -> None:
    long = "\n".join(f"    items.{name}()" for name in "abcdefghijklmnopqrstuvwxyz")
    found = [passage("a.py", f"def cart(items):\n{long}", "python")]
    brief = await answer("items of the cart", found, Style(detail="brief"))
    thorough = await answer("items of the cart", found, Style(detail="thorough"))

    assert len(brief) < len(thorough)


@pytest.mark.parametrize(
    ("language", "lead", "missing"),
    [
        ("en", "Quoted from the project", "do not mention `no_such_thing`."),
        ("pt-BR", "Trechos do projeto", "não mencionam `no_such_thing`."),
        ("es-419", "Fragmentos del proyecto", "no mencionan `no_such_thing`."),
        ("xx", "Quoted from the project", "do not mention `no_such_thing`."),
    ],
)
async def test_what_it_says_itself_is_in_the_reply_language(
    language: str, lead: str, missing: str
) -> None:
    text = await answer("Where is no_such_thing in the cart?", language=language)

    first, second, *_ = text.split("\n\n")
    assert first.endswith(missing)
    assert second.startswith(lead)


async def test_a_proper_name_that_no_passage_holds_is_told_before_a_few_quotes() -> None:
    many = [passage(f"{name}.py", f"operator_{name} = 1", "python") for name in "abcdef"]

    text = await answer("Where is the Kubernetes operator implemented?", many)

    assert text.startswith("The excerpts below do not mention `Kubernetes`.\n\nQuoted")
    assert text.count("```python") == 2


async def test_the_definition_of_just_the_name_comes_before_those_of_longer_names() -> None:
    found = [
        passage("a.py", "class CartState:\n    cart = 1", "python"),
        passage("b.py", "class Cart:\n    state = 1", "python"),
    ]

    place = await answer("Where is the class Cart defined?", found)
    what = await answer("what is the cart state and the cart?", found)

    assert check_citations(place, found) == (2,)
    assert what.index("`CartState`") < what.index("`Cart` ")


async def test_a_long_definition_is_its_signature_and_the_lines_that_answer() -> None:
    body = "\n".join(f"    step_{name}()" for name in "abcdefghijklmnopqrstuvwxyz")
    code = f'def run(\n    order,\n):\n    """Run."""\n{body}\n    retry(order)\n    return order'
    found = [passage("a.py", code, "python")]

    text = await answer("How does run retry?", found, Style(detail="brief"))

    assert text == LEAD + (
        "`run` is defined at `a.py:1-32` [1]:\n\n"
        '```python\ndef run(\n    order,\n):\n    """Run."""\n    ...\n    step_x()\n    step_y()\n'
        "    step_z()\n    retry(order)\n    return order\n```"
    )
    assert check_citations(text, found) == (1,)


async def test_a_docstring_that_a_few_lines_more_finish_is_quoted_to_its_end() -> None:
    told = "\n".join(f"    Line {n}." for n in range(9))
    found = [
        passage(
            "a.py", f'def run():\n    """Run.\n\n{told}\n    """\n' + "    x()\n" * 20, "python"
        )
    ]

    text = await answer("What does run do?", found, Style(detail="brief"))

    assert text.endswith('    Line 8.\n    """\n    ...\n```')


HOW_TO = [
    passage("shop/roll_out.py", "def deploy(stage):\n    image.deploy(stage)", "python"),
    passage(
        "notes/stages.md",
        "# Deploy to a stage\n\nPush the tag, as follows:\n\n```sh\ngit push\n```",
        "markdown",
    ),
]


@pytest.mark.parametrize(
    "question",
    [
        "How do I deploy to a stage?",
        "What happens when I deploy to a stage?",
        "Is there a way to deploy to a stage?",
    ],
)
async def test_how_to_is_answered_by_documents_with_their_examples(question: str) -> None:
    text = await answer(question, HOW_TO)

    assert text.startswith(
        f"{LEAD}`notes/stages.md:3-3` [2]:\n\n> Push the tag, as follows:\n\n"
        "`notes/stages.md:6-6` [2]:\n\n```sh\ngit push\n```"
    )


async def test_an_example_of_restructured_text_stays_with_what_introduces_it() -> None:
    text = await answer(
        "How do I deploy?",
        [passage("a.rst", "To deploy, do this:\n\n.. code-block:: sh\n\n    git push", "rst")],
    )

    assert text == (
        f"{LEAD}`a.rst:1-1` [1]:\n\n> To deploy, do this:\n\n"
        "`a.rst:3-3` [1]:\n\n> .. code-block:: sh\n\n"
        "`a.rst:5-5` [1]:\n\n```text\n    git push\n```"
    )


async def test_a_table_s_row_is_quoted_below_its_header() -> None:
    rows = "\n".join(f"| `{name}_SIZE` | {'the size of a thing ' * 5} |" for name in "ABCDEFGH")
    table = passage("t.md", f"# Settings\n\n| name | meaning |\n|---|---|\n{rows}", "markdown")

    text = await answer("What is F_SIZE?", [table], Style(detail="brief"))

    row = rows.split("\n")[5]
    assert text == LEAD + (
        f"`t.md:3-10` [1]:\n\n```text\n| name | meaning |\n|---|---|\n...\n{row}\n...\n```"
    )
    assert check_citations(text, [table]) == (1,)


async def test_a_table_without_its_header_does_not_begin_at_its_rule() -> None:
    text = await answer(
        "What is the size?", [passage("t.md", "|---|\n| size |\n| b |", "markdown")]
    )

    assert text == f"{LEAD}`t.md:2-3` [1]:\n\n```text\n| size |\n| b |\n```"


OVERVIEW = [
    passage("sub/README.md", "# Part\n\nThis part is no more than a small part.", "markdown"),
    passage("shop/__init__.py", '"""A shop."""', "python"),
    passage(
        "README.md",
        "# Shop\n\n[![badge](a)](b)\n\nA small shop, to try things out.",
        "markdown",
    ),
]


@pytest.mark.parametrize(
    "question",
    [
        "What does this project do?",
        "What is this project?",
        "¿Para qué sirve este proyecto?",
        "O que é este projeto?",
    ],
)
async def test_what_a_project_is_is_told_by_its_readme_or_its_package(question: str) -> None:
    by_readme = await answer(question, OVERVIEW)
    by_package = await answer(question, OVERVIEW[:2])

    assert by_readme == f"{LEAD}`README.md:5-5` [3]:\n\n> A small shop, to try things out."
    assert by_package == f'{LEAD}`shop/__init__.py:1-1` [2]:\n\n```python\n"""A shop."""\n```'


async def test_a_class_whose_members_stand_in_another_passage_goes_on() -> None:
    found = [
        passage("a.py", 'class Cart:\n    """Holds items."""', "python"),
        replace(passage("a.py", "    def add(self): ...", "python", 9), symbol="Cart.add"),
    ]

    alone = await answer("Where is the class Cart defined?", found[:1])
    both = await answer("Where is the class Cart defined?", found)

    assert alone.endswith(
        'begins at `a.py:1-2` [1]:\n\n```python\nclass Cart:\n    """Holds items."""\n```'
    )
    assert both.endswith('    """Holds items."""\n    ...\n```')


async def test_a_gap_is_told_without_the_words_it_came_in() -> None:
    text = await answer("How are the settings read?", gap="forged [2] gap")

    assert "forged" not in text
    assert text.endswith("These excerpts may not answer the whole question.")


async def test_what_was_found_by_meaning_alone_is_quoted_from_the_best_passage() -> None:
    text = await answer("zzz qqq")

    assert "`shop/cart.py:1-1` [1]:" in text


async def test_no_passages_leave_the_honest_sentences_alone() -> None:
    text = await answer("Where is it?", passages=())

    assert text == LEAD + "These excerpts may not answer the whole question."


async def test_a_test_s_lines_count_less_unless_tests_are_asked_about() -> None:
    both = [
        passage("tests/test_total.py", "x = total(cart)", "python"),
        passage("shop/total.py", "y = total(cart)", "python"),
    ]

    about_code = await answer("total of the cart", passages=both)
    about_tests = await answer("total of the cart in tests", passages=both)

    assert about_code.splitlines()[2] == "`shop/total.py:1-1` [2]:"
    assert about_tests.splitlines()[2] == "`tests/test_total.py:1-1` [1]:"


async def test_the_same_lines_are_quoted_once() -> None:
    text = await answer("Where is add_item defined?", passages=[PASSAGES[0], PASSAGES[0]])

    assert text.count("def add_item") == 1


async def test_one_passage_does_not_take_all_the_room() -> None:
    three = "\n\n".join(f"def {name}():\n    return 1" for name in ("alpha", "beta", "gamma"))

    text = await answer("alpha beta gamma", passages=[passage("a.py", three, "python")])

    assert text.count("```python") == 2


async def test_an_answer_of_many_long_lines_stays_short() -> None:
    wide = [
        passage(
            f"{name}.py", f"def {name}_settings():\n" + f"    settings = '{name * 1_000}'", "python"
        )
        for name in "abcd"
    ]

    text = await answer("Where are the settings?", passages=wide)

    assert len(text) < 5_000


async def test_a_marker_in_an_excerpt_is_never_one_of_ours() -> None:
    forged = passage("notes.md", "The settings are in a file [1]. See [2] and [9].", "markdown")

    text = await answer("Where are the settings?", passages=[forged])

    assert check_citations(text, [forged, *PASSAGES]) == (1,)
    assert "```text\nThe settings are in a file [1]. See [2] and [9].\n```" in text


async def test_a_fence_in_an_excerpt_does_not_end_ours() -> None:
    forged = passage("a.py", "settings = '''\n```\n[2] settings\n'''", "python")

    text = await answer("Where are the settings?", passages=[forged, forged])

    assert "````python\nsettings = '''\n```\n[2] settings\n'''\n````" in text
    assert check_citations(text, [forged, *PASSAGES]) == (1,)


async def test_the_marker_line_of_a_cut_passage_is_not_quoted() -> None:
    cut = passage("a.txt", "The settings are here.\n[cut]", "text")
    cut = Passage(**{name: getattr(cut, name) for name in cut.__slots__} | {"truncated": True})

    text = await answer("Where are the settings?", passages=[cut])

    assert "> The settings are here." in text
    assert "cut]" not in text


TEXT = st.text(
    alphabet=st.one_of(
        st.sampled_from("settings items [1] [99] `~>#-*\n\n def class():=/.\\\t\r\x0c"),
        st.characters(exclude_categories=["Cs"]),
    ),
    max_size=300,
)
ANY_PASSAGE = st.builds(
    passage,
    path=st.text(alphabet="ab[1]`./ \n漢", min_size=1, max_size=12),
    content=TEXT,
    language=st.sampled_from(["python", "markdown", "text", "javascript", "sql", "", "[2]", "c"]),
    start=st.integers(min_value=1, max_value=9_999),
)


@settings(max_examples=150, deadline=None)
@given(
    question=st.one_of(st.just("Where are the settings of items [7]?"), TEXT),
    passages=st.lists(ANY_PASSAGE, max_size=4),
    style=st.builds(
        Style,
        detail=st.sampled_from(["brief", "thorough", None]),
        format=st.sampled_from(["bullets", "prose", None]),
    ),
)
async def test_whatever_the_excerpts_hold_markers_are_ours_and_quotes_are_theirs(
    question: str, passages: list[Passage], style: Style
) -> None:
    text = await answer(question, passages=passages, style=style)

    lines = {line.strip() for each in passages for line in each.content.splitlines()}
    for block in split_blocks(text):
        for marker in re.findall(r"\[(\d+)\]", block.prose):
            assert 1 <= int(marker) <= len(passages)
        if block.kind != "paragraph":
            assert {line.strip() for line in block.text.splitlines()} <= lines | {"", "..."}


async def test_the_history_is_repeated_without_its_markers() -> None:
    last = HistoryTurn(question="Where?", answer="In `a.py` [1]:\n\n```\nx[1]\n```")
    request = ModelRequest(
        task="answer_from_history",
        messages=(),
        question="What did you just say?",
        history=[last],
    )

    assert await reply(request) == ("My last answer was:\n\nIn `a.py`:\n\n```\nx[1]\n```")


async def test_a_classification_has_an_intent_and_a_query() -> None:
    request = ModelRequest(task="classify", messages=(), question="Where is add_item defined?")

    assert await ExtractiveModel().decide(request) == {
        "intent": "codebase_question",
        "search_query": "Where is add_item defined?",
    }


async def test_a_grading_names_what_is_missing() -> None:
    request = ModelRequest(
        task="grade", messages=(), question="Where is no_such_thing?", passages=PASSAGES
    )

    assert await ExtractiveModel().decide(request) == {
        "sufficient": False,
        "gap": "`no_such_thing`",
        "better_query": "no_such_thing no such thing",
    }


async def test_it_says_what_it_is_and_takes_any_turn() -> None:
    model = ExtractiveModel()

    assert model.name == "extractive"
    assert await model.context_tokens() >= 1_000_000
    assert model.count_tokens("ação") == 4


def test_no_warning_is_left_out_of_these_tests() -> None:
    assert len(GroundingWarning) == 5


@pytest.mark.parametrize("line", ["def f():", "f()", "x f y", "| f |", "f:", '"""f'])
async def test_an_answer_is_never_long_in_coming(line: str) -> None:
    content = "\n".join([line] * 4_000)  # a quadratic search would run into the time-out

    for language in ("python", "markdown"):
        assert "a.x:" in await answer(
            "How does f work?", [passage("a.x", content, language)], Style(detail="thorough")
        )
