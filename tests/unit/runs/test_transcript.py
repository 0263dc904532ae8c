"""Whatever a turn says, what is shown is in the order that surfaces rely on."""

from hypothesis import given
from hypothesis import strategies as st

from ibid.domain.events import CitationsFound, Entry, Phase, StatusChanged, TokenDelta, TurnEvent
from ibid.runs.terminator import Stop, terminator
from ibid.runs.transcript import Transcript
from tests.fakes.samples import a_citation

EVENTS = st.one_of(
    st.sampled_from(Phase).map(lambda phase: StatusChanged(phase=phase)),
    st.just(CitationsFound(citations=(a_citation(cited=None),))),
    st.text(st.characters()).map(lambda text: TokenDelta(text=text)),
    st.sampled_from(["\ud83d", "\ude00", "a\udfff"]).map(lambda text: TokenDelta(text=text)),
)


def _shown(*events: TurnEvent) -> Transcript:
    transcript = Transcript()
    for event in events:
        transcript.show(event)
    return transcript


@given(st.lists(EVENTS))
def test_ids_rise_by_one_and_citations_stand_between_phases_and_tokens(
    events: list[TurnEvent],
) -> None:
    transcript = _shown(*events)

    shown = [entry.event for entry in transcript.entries]
    kinds = [type(event) for event in shown]
    assert [entry.id for entry in transcript.entries] == list(range(1, len(shown) + 1))
    assert kinds.count(CitationsFound) <= 1
    if TokenDelta in kinds:
        first = kinds.index(TokenDelta)
        assert CitationsFound in kinds[:first]
        assert set(kinds[first:]) == {TokenDelta}


@given(st.lists(EVENTS))
def test_no_token_is_lost_and_all_of_them_can_be_kept(events: list[TurnEvent]) -> None:
    said = [event.text for event in events if isinstance(event, TokenDelta)]

    text = _shown(*events).text

    assert text.encode().decode() == text
    assert len(text) == len("".join(said))
    if all(piece.isprintable() for piece in said):
        assert text == "".join(said)


def test_both_halves_in_one_piece_are_one_character() -> None:
    assert _shown(TokenDelta(text="\ud83e\udd8a!")).text == "🦊!"


def test_the_first_citations_are_the_ones_kept() -> None:
    first, second = a_citation(1, cited=None), a_citation(2, cited=None)

    transcript = _shown(CitationsFound(citations=[first]), CitationsFound(citations=[second]))

    assert transcript.citations == (first,)
    assert Transcript().citations == ()


def test_a_done_without_tokens_has_citations_before_it() -> None:
    transcript = _shown(StatusChanged(phase=Phase.RETRIEVING))

    transcript.complete()
    transcript.complete()

    assert transcript.entries[1:] == [Entry(id=2, event=CitationsFound(citations=()))]


def test_what_nobody_saw_is_forgotten_and_its_ids_used_again() -> None:
    transcript = _shown(TokenDelta(text="seen"), TokenDelta(text="unseen"))

    transcript.cut(2)

    assert transcript.text == "seen"
    assert transcript.last_id == 2


def test_a_terminator_keeps_the_id_it_was_kept_under() -> None:
    transcript = _shown(TokenDelta(text="a"))
    lost = Entry(id=1_000, event=terminator(Stop.PROCESS_DIED, message_id=None))

    transcript.end(lost)

    assert transcript.entries[-1] == lost
    assert (transcript.last_id, transcript.has_ended) == (2, True)
