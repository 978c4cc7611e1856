"""A stream tailer against real embedded stores and a scheduler that does as it is told."""

from tailrace.model.dead_letter import LetterFilter
from tailrace.model.outcome import Outcome
from tailrace.model.workload import Ended
from tailrace.stores.log.log import Record
from tailrace.wire.v1 import scheduler_pb2 as pb

LOG = {"kind": "log", "stream": "s"}
SUCCESS = Ended(Outcome.SUCCESS)


async def fill(stores, count, headers=(), start=0):
    await stores.log.append("s", 0, [Record(b"%d" % n, headers=headers) for n in range(start, start + count)])


async def position(stores, name="t"):
    marks = await stores.checkpoints.load(name)
    return marks["0"].position if "0" in marks else 0


async def settled(eventually, tailer, count):
    await eventually(lambda: (o := tailer.overview()).settled + o.parked + o.dead == count)


async def test_everything_is_pushed_once_and_the_checkpoint_follows(stores, scheduler, start, eventually):
    scheduler.allow("f")
    await fill(stores, 3000)
    tailer = await start(source=LOG, function="f")
    await settled(eventually, tailer, 3000)
    assert [id_.rsplit("/", 1)[1] for id_ in scheduler.ids] == [str(n) for n in range(3000)]
    assert [p for flight in scheduler.flights for p in flight.payloads] == [b"%d" % n for n in range(3000)]
    await tailer.drain(5)
    await tailer.stop()
    assert await position(stores) == 3000
    assert (await stores.ownership.read("t", "")).holder == ""


async def test_a_restart_after_a_drain_goes_on_at_once_and_repeats_nothing(stores, scheduler, start, eventually):
    scheduler.allow("f")
    await fill(stores, 100)
    first = await start(source=LOG, function="f")
    await settled(eventually, first, 100)
    await first.drain(5)
    await first.stop()
    await fill(stores, 50, start=100)
    second = await start(source=LOG, function="f")
    await settled(eventually, second, 50)
    assert len(scheduler.ids) == len(set(scheduler.ids)) == 150
    assert scheduler.flights[-1].fence > scheduler.flights[0].fence


async def test_failures_are_parked_or_buried_before_the_frontier_passes(stores, scheduler, parking, start, eventually):
    def decide(flight, index):
        number = int(flight.payloads[index])
        if number % 10 == 1:
            return Ended(Outcome.RETRY, "flaky")
        if number % 10 == 2:
            return Ended(Outcome.FATAL, "broken")
        if number % 10 == 3:
            return Ended(Outcome.THROTTLED, "slow down", after=60)
        return SUCCESS

    scheduler.decide = decide
    scheduler.allow("f")
    parking.failures = 2
    await fill(stores, 100)
    tailer = await start(source=LOG, function="f")
    await settled(eventually, tailer, 100)
    assert {(item.attempt, item.throttles) for item in parking.items} == {(2, 0), (1, 1)}
    assert len(parking.items) == 20
    letters = await stores.dead_letters.list(LetterFilter(), 100)
    assert len(letters) == 10 and {letter.reason for letter in letters} == {"broken"}
    await tailer.drain(5)
    await tailer.stop()
    assert await position(stores) == 100


async def test_a_checkpoint_never_passes_what_is_out_and_a_restart_repeats_only_that(
    stores, scheduler, start, eventually
):
    scheduler.decide = lambda flight, index: None if flight.payloads[index] == b"7" else SUCCESS
    scheduler.allow("f")
    await fill(stores, 100)
    tailer = await start(source=LOG, function="f")
    await settled(eventually, tailer, 99)
    await tailer.drain(0.1)
    await tailer.stop()
    assert await position(stores) == 7
    scheduler.flights.clear()
    scheduler.decide = lambda flight, index: SUCCESS
    again = await start(source=LOG, function="f")
    await eventually(lambda: "previous owner" in again.overview().detail)
    assert again.overview().state == "starting" and not scheduler.flights
    await settled(eventually, again, 1)
    assert scheduler.ids == ["t/0/7"]


async def test_lost_items_are_handed_out_again_and_crashes_end_as_dead_letters(stores, scheduler, start, eventually):
    seen = []

    def decide(flight, index):
        extra = flight.extras.get(index)
        seen.append((flight.payloads[index], flight.fence, extra.crashes if extra else 0, bool(extra and extra.alone)))
        if flight.payloads[index] == b"1":
            return Ended(Outcome.LOST, "signal 11", crashed=True)
        if flight.payloads[index] == b"2" and sum(one[0] == b"2" for one in seen) == 1:
            return Ended(Outcome.LOST, "neighbour")
        return SUCCESS

    scheduler.decide = decide
    scheduler.allow("f")
    await fill(stores, 5)
    tailer = await start(source=LOG, function="f", retry={"max_crashes": 3})
    await settled(eventually, tailer, 5)
    ones = [one for one in seen if one[0] == b"1"]
    assert [(crashes, alone) for _, _, crashes, alone in ones] == [(0, False), (1, True), (2, True)]
    assert [fence for _, fence, _, _ in ones] == sorted({fence for _, fence, _, _ in ones})
    assert sum(one[0] == b"2" for one in seen) == 2
    [letter] = await stores.dead_letters.list(LetterFilter(), 10)
    assert letter.crashes == 3 and letter.attempts == 0 and "3 of 3" in letter.reason


async def test_items_without_credit_are_held_and_others_pass(stores, scheduler, start, eventually):
    scheduler.allow("fast")
    await fill(stores, 500, (("function", "slow"), ("tenant", "a")))
    await fill(stores, 500, (("function", "fast"), ("tenant", "b")))
    tailer = await start(
        source=LOG, function={"header": "function"}, tenant={"header": "tenant"}, window={"items": 100}
    )
    await settled(eventually, tailer, 500)
    assert tailer.overview().held == 500
    assert {kind.tenant for flight in scheduler.flights for kind in flight.kinds} == {"b"}
    scheduler.allow("slow", 60)
    await settled(eventually, tailer, 1000)
    payloads = [p for flight in scheduler.flights for p in flight.payloads]
    assert sorted(payloads[500:]) == sorted(b"%d" % n for n in range(500))


async def test_a_closed_cell_holds_its_items_and_one_that_drops_does_not(stores, scheduler, start, eventually):
    scheduler.allow("f")
    scheduler.closed = [pb.ClosedCell(function="f", tenant="a", reason="paused by ann")]
    await fill(stores, 20, (("t", "a"),))
    await fill(stores, 20, (("t", "b"),))
    tailer = await start(source=LOG, function="f", tenant={"header": "t"})
    await settled(eventually, tailer, 20)
    assert tailer.overview().held == 20
    scheduler.closed = [pb.ClosedCell(function="f", tenant="a", drop=True)]
    scheduler.decide = lambda flight, index: Ended(Outcome.DROPPED, "gate")
    scheduler.announce()
    await settled(eventually, tailer, 40)


async def test_an_item_that_names_no_function_is_held_and_reported(stores, scheduler, start, eventually):
    scheduler.allow("f")
    await fill(stores, 3)
    tailer = await start(source=LOG, function={"header": "function"}, window={"positions": 3})
    await eventually(lambda: tailer.overview().state == "clogged")
    assert tailer.overview().held == 3 and 'no worker runs ""' in tailer.overview().detail


async def test_held_and_throttled_items_come_back_without_an_attempt(stores, scheduler, start, eventually):
    times = {}

    def decide(flight, index):
        number = int(flight.payloads[index])
        times[number] = times.get(number, 0) + 1
        assert flight.attempts[index] == 1
        if times[number] == 1:
            return Ended(Outcome.HELD) if number % 2 else Ended(Outcome.THROTTLED, after=0.05)
        return SUCCESS

    scheduler.decide = decide
    scheduler.allow("f")
    await fill(stores, 50)
    tailer = await start(source=LOG, function="f")
    await settled(eventually, tailer, 50)
    assert set(times.values()) == {2}


async def test_what_is_handed_back_time_and_again_is_held_and_says_why(stores, scheduler, start, eventually):
    scheduler.decide = lambda flight, index: Ended(Outcome.HELD, "its clock is wrong")
    scheduler.allow("f")
    await fill(stores, 3)
    tailer = await start(source=LOG, function="f")
    await eventually(lambda: "3 items are held: handed back unstarted time and again" in tailer.overview().detail)
    scheduler.decide = lambda flight, index: SUCCESS
    await settled(eventually, tailer, 3)
    assert {attempt for flight in scheduler.flights for attempt in flight.attempts} == {1}


async def test_a_new_scheduler_gets_the_items_only_when_the_old_lease_is_over(stores, scheduler, start, eventually):
    scheduler.decide = lambda flight, index: None
    scheduler.allow("f")
    await fill(stores, 10)
    tailer = await start(source=LOG, function="f")
    await eventually(lambda: len(scheduler.ids) == 10)
    scheduler.ask_for_leases()
    await eventually(lambda: len(scheduler.session.grants) == 1)
    grant = scheduler.session.grants[0]
    assert list(grant.flights) == [flight.number for flight in scheduler.flights]
    assert 0 < grant.lease <= 0.56
    scheduler.flights.clear()
    scheduler.decide = lambda flight, index: SUCCESS
    await scheduler.restart()
    await fill(stores, 5, start=10)
    await settled(eventually, tailer, 5)
    assert {p for flight in scheduler.flights for p in flight.payloads} == {b"%d" % n for n in range(10, 15)}
    await settled(eventually, tailer, 15)
    assert sorted(scheduler.ids) == sorted(f"t/0/{n}" for n in range(15))


async def test_a_connection_that_breaks_and_heals_restarts_nothing(stores, scheduler, start, eventually):
    scheduler.decide = lambda flight, index: None
    scheduler.allow("f")
    await fill(stores, 10)
    tailer = await start(source=LOG, function="f")
    await eventually(lambda: len(scheduler.ids) == 10)
    await scheduler.stop()
    for flight in scheduler.flights:
        for index in range(len(flight)):
            scheduler.session.end(flight, index, SUCCESS)
    await scheduler.start(scheduler.address)
    await settled(eventually, tailer, 10)
    assert len(scheduler.ids) == 10


async def test_a_delay_that_cannot_be_parked_is_a_dead_letter(stores, scheduler, parking, start, eventually):
    parking.most = 10
    scheduler.decide = lambda flight, index: Ended(Outcome.RETRY, "later", after=100)
    scheduler.allow("f")
    await fill(stores, 1)
    tailer = await start(source=LOG, function="f")
    await settled(eventually, tailer, 1)
    [letter] = await stores.dead_letters.list(LetterFilter(), 10)
    assert "cannot be parked" in letter.reason


async def test_results_are_durable_before_the_frontier_passes(stores, scheduler, start, eventually):
    scheduler.decide = lambda flight, index: Ended(Outcome.SUCCESS, result=b"42")
    scheduler.allow("f")
    await fill(stores, 3)
    tailer = await start(source=LOG, function="f", results=True)
    await settled(eventually, tailer, 3)
    assert all(flight.wants_result for flight in scheduler.flights)
    assert await stores.results.get("t/0/2") == b"42"


async def test_paused_reads_nothing_until_resumed(stores, scheduler, start, eventually):
    scheduler.allow("f")
    tailer = await start(source=LOG, function="f")
    await eventually(lambda: tailer.overview().state == "running")
    tailer.pause()
    assert tailer.overview().state == "paused"
    tailer.resume()
    await fill(stores, 3)
    await settled(eventually, tailer, 3)


async def test_on_a_healthy_stream_no_payload_byte_is_written(stores, scheduler, start, eventually):
    scheduler.allow("f")
    tailer = await start(source=LOG, function="f")
    await stores.log.append("s", 0, [Record(b"payload-to-look-for-%d" % n) for n in range(2000)])
    await settled(eventually, tailer, 2000)
    await tailer.drain(5)
    await tailer.stop()
    files = {file.name: file.read_bytes() for file in stores.data_dir.path.iterdir() if file.is_file()}
    holding = {name for name, content in files.items() if b"payload-to-look-for" in content}
    assert holding and all(name.startswith("log.db") for name in holding)


async def test_what_was_lost_runs_before_what_waits(stores, scheduler, start, eventually):
    # Given credit for two items, which are out, and others that were read and wait
    scheduler.allow("f", limit=2)
    scheduler.decide = lambda flight, index: None
    await fill(stores, 6, headers=(("function", "f"),))
    tailer = await start(source=LOG, function={"header": "function"})
    await eventually(lambda: len(scheduler.ids) == 2 and tailer.overview().held == 4)
    # When one is lost, then it goes again before those that wait, and says so
    [first] = [flight for flight in scheduler.flights if flight.payloads[0] == b"0"]
    scheduler.session.end(first, 0, Ended(Outcome.LOST, "its worker died"))
    await eventually(lambda: len(scheduler.ids) == 3)
    assert scheduler.flights[-1].payloads == [b"0"] and scheduler.flights[-1].extras[0].again
    scheduler.decide = lambda flight, index: SUCCESS
    for flight in (scheduler.flights[0], scheduler.flights[-1]):
        for index in range(len(flight)):
            if flight.payloads[index] != b"0" or flight is scheduler.flights[-1]:
                scheduler.session.end(flight, index, SUCCESS)
    await settled(eventually, tailer, 6)


async def test_what_a_lost_session_had_out_runs_before_what_waits(stores, scheduler, start, eventually):
    scheduler.allow("f", limit=2)
    scheduler.decide = lambda flight, index: None
    await fill(stores, 6, headers=(("function", "f"),))
    tailer = await start(source=LOG, function={"header": "function"})
    await eventually(lambda: len(scheduler.ids) == 2 and tailer.overview().held == 4)
    # When the session is lost, others go meanwhile; nothing of it can be running when its leases are over
    await scheduler.restart()
    await eventually(lambda: len(scheduler.ids) == 4)
    [part] = tailer._pump._partitions.values()
    await eventually(lambda: not part.held.later)
    others = [(flight, index) for flight in scheduler.flights for index, p in enumerate(flight.payloads) if p > b"1"]
    for flight, index in others:
        scheduler.session.end(flight, index, SUCCESS)
    # Then what was out goes before what waits
    await eventually(lambda: len(scheduler.ids) == 4 + len(others))
    again = [flight for flight in scheduler.flights if flight.extras]
    assert sorted(payload for flight in again for payload in flight.payloads) == [b"0", b"1"]
    assert all(extra.again for flight in again for extra in flight.extras.values())
