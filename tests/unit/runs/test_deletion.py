"""Deleted means gone, whatever was running."""

import asyncio
from contextlib import suppress
from dataclasses import replace

import pytest

from ibid.domain.errors import ConversationNotFound, ProjectNotFound, RunNotFound, StoreUnavailable
from ibid.domain.principals import Principal
from ibid.domain.projects import Role
from ibid.runs.deletion import Deletion
from tests.fakes.run_bench import LIMITS, Bench, read
from tests.fakes.samples import ANN, a_conversation, a_project, a_turn, scripted_work
from tests.fakes.works import asking_work

BOB = Principal(tenant="acme", subject="bob")


def _forever() -> "asyncio.Future[None]":
    return asyncio.get_running_loop().create_future()


class Threads:
    """The checkpoint threads that were deleted, and how the conversation stood then."""

    def __init__(self, bench: Bench) -> None:
        self._bench = bench
        self.deleted: list[tuple[str, bool]] = []
        self.faults = 0

    async def adelete_thread(self, thread_id: str) -> None:
        if self.faults:
            self.faults -= 1
            raise StoreUnavailable("away")
        try:
            await self._bench.records.conversations.get("c1", principal=ANN)
        except ConversationNotFound:
            self.deleted.append((thread_id, False))
        else:
            self.deleted.append((thread_id, True))


def _deletion(bench: Bench, threads: Threads) -> Deletion:
    return Deletion(
        engine=bench.another(owner="other", limits=replace(LIMITS, poll_s=0.001)),
        projects=bench.records.projects,
        conversations=bench.records.conversations,
        runs=bench.records.runs,
        checkpoints=threads,
    )


async def _beating(bench: Bench, deleting: "asyncio.Task[None]") -> None:
    while not deleting.done():
        bench.clock.move(0.05)
        await bench.engine.look()
        await asyncio.sleep(0.001)
    await deleting


async def test_a_conversation_goes_with_its_runs_and_its_checkpoints(bench: Bench) -> None:
    threads = Threads(bench)
    await read(await bench.engine.start(a_turn(), asking_work()))
    await read(await bench.engine.resume(await bench.resumption("c1-1"), asking_work("here")))
    live = await bench.engine.start(a_turn(), scripted_work("a", pause=_forever))
    conversation = await bench.records.conversations.get("c1", principal=ANN)

    deletion = _deletion(bench, threads)
    await _beating(bench, asyncio.create_task(deletion.conversation(conversation)))

    assert live.ended.done()
    for number in (1, 2, 3):
        with pytest.raises(RunNotFound):
            await bench.run(f"c1-{number}")
    assert sorted(threads.deleted) == [
        ("c1-1", False),
        ("c1-1", True),
        ("c1-3", False),
        ("c1-3", True),
    ]
    with pytest.raises(ConversationNotFound):
        await deletion.conversation(conversation)


async def test_a_deletion_that_failed_can_be_asked_for_again(bench: Bench) -> None:
    threads = Threads(bench)
    await read(await bench.engine.start(a_turn(), scripted_work("a")))
    threads.faults = 1
    deletion = _deletion(bench, threads)

    with pytest.raises(StoreUnavailable):
        await deletion.conversation(a_conversation())
    assert len(await bench.messages()) == 2
    await deletion.conversation(a_conversation())

    assert threads.deleted == [("c1-1", True), ("c1-1", False)]


async def test_a_project_goes_with_the_conversations_of_all_its_members(bench: Bench) -> None:
    threads = Threads(bench)
    project = a_project("p2")
    project = replace(project, members={**project.members, BOB.subject: Role.VIEWER})
    await bench.records.projects.create(project)
    for who in (ANN, BOB):
        name = f"of {who.subject}"
        conversation = a_conversation(name, principal=who, project_id="p2")
        await bench.records.conversations.create(conversation)
        turn = a_turn(principal=who, conversation=conversation, project=project)
        await read(await bench.engine.start(turn, scripted_work("a")))
    await read(await bench.engine.start(a_turn(), scripted_work("stays")))

    await _deletion(bench, threads).project(project)

    assert {thread for thread, _ in threads.deleted} == {"of ann-1", "of bob-1"}
    with pytest.raises(ProjectNotFound):
        await bench.records.projects.get("p2", tenant="acme")
    for who in (ANN, BOB):
        with pytest.raises(ConversationNotFound):
            await bench.records.conversations.get(f"of {who.subject}", principal=who)
    assert len(await bench.messages()) == 2


class _BusyThreads(Threads):
    """A run begins each time that a thread is deleted, as long as there is a conversation."""

    async def adelete_thread(self, thread_id: str) -> None:
        await super().adelete_thread(thread_id)
        turn = replace(a_turn(), strategy="interrupt")
        with suppress(ConversationNotFound):
            await self._bench.engine.start(turn, scripted_work(pause=_forever))


@pytest.mark.parametrize("what", ["conversation", "project"])
async def test_the_checkpoints_of_a_run_that_begins_during_a_deletion_go_too(
    bench: Bench, what: str
) -> None:
    threads = _BusyThreads(bench)
    await read(await bench.engine.start(a_turn(), asking_work()))
    await read(await bench.engine.resume(await bench.resumption("c1-1"), asking_work()))
    conversation = await bench.records.conversations.get("c1", principal=ANN)
    await bench.engine.cancel_run("c1-2", principal=ANN)
    deletion = _deletion(bench, threads)
    deleting = (
        deletion.conversation(conversation)
        if what == "conversation"
        else deletion.project(a_project())
    )

    await _beating(bench, asyncio.create_task(deleting))

    assert {turn for turn, is_before in threads.deleted if not is_before} == {"c1-1", "c1-3"}
