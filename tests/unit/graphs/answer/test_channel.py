import asyncio

from ibid.graphs.answer.channel import Channel


async def test_items_come_in_order_and_end_behind_the_last() -> None:
    channel: Channel[int] = Channel(room=3)
    for number in range(3):
        await channel.put(number)
    channel.end()

    assert [item async for item in channel] == [0, 1, 2]


async def test_a_full_channel_holds_its_writer_back_until_an_item_is_taken() -> None:
    channel: Channel[int] = Channel(room=1)
    await channel.put(1)
    second = asyncio.create_task(channel.put(2))
    await asyncio.sleep(0)
    was_held = not second.done()

    reader = aiter(channel)
    first = await anext(reader)
    await second

    assert (was_held, first) == (True, 1)


async def test_the_end_finds_room_in_a_full_channel() -> None:
    channel: Channel[int | None] = Channel(room=1)
    await channel.put(None)
    channel.end()

    assert [item async for item in channel] == [None]


async def test_nobody_waits_for_a_reader_that_has_left() -> None:
    channel: Channel[int] = Channel(room=1)
    await channel.put(1)
    held = asyncio.create_task(channel.put(2))
    await asyncio.sleep(0)

    channel.leave()
    await held
    for number in range(10):
        await channel.put(number)

    assert held.done()
