"""The simulations that the makespan benchmark compares the engine with, on cases small enough to count by hand."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

sys.path.append(str(Path(__file__).resolve().parents[2] / "benchmarks"))

from makespan import Load, virtually
from virtual import Job, as_the_authors, bound, critical_path, heights, ideal, jobs_of, work
from virtual_groups import group_jobs_of

from simengine.kernel import Committed, Event
from simengine.scenario.schema import read
from simengine.scenario.setup import Setup

ONE_ROUND = ("choose/r1", "reflect.user/r1", "reflect.item/r1")
TWO_ROUNDS = (*ONE_ROUND, "choose/r2", "reflect.user/r2", "reflect.item/r2")
SINGLE = [Job(1.0, (), event) for event in range(5)]
CHAIN = [Job(1.0, (), 5), Job(1.0, (5,), 6), Job(1.0, (6,), 7)]
FIRST = [Job(each, (), 0, path) for each, path in zip((1.0, 2.0, 3.0), ONE_ROUND, strict=True)]
SECOND = [Job(each, (), 1, path) for each, path in zip((4.0, 1.0, 1.0), ONE_ROUND, strict=True)]


def step(time: int, user: str, item: str, negative: str, paths: tuple[str, ...] = ONE_ROUND) -> Committed:
    """An interaction that made these calls."""
    event = Event(
        id=f"{user}/{item}/{time}",
        kind="interaction",
        order=(0, time, user, item),
        time=time,
        writes=(f"user:{user}", f"item:{item}"),
        reads=(f"item:{negative}",),
        source=True,
    )
    return Committed(event, [], [], [(path, "") for path in paths], [("choose/r1", "ok")], [])


def waits(records: list[Committed], span: float = 0.0) -> list[tuple[int, ...]]:
    """For each call the calls that it waits for."""
    return [job.after for job in jobs_of(records, lambda call: 1.0, span)]


class TestIdeal:
    @pytest.mark.parametrize(
        ("seconds", "slots", "expected"), [((3, 2, 1), 1, 6), ((3, 2, 1), 2, 3), ((1, 2, 3), 2, 4), ((3, 2, 1), 9, 3)]
    )
    def test_a_free_slot_goes_to_the_next(self, seconds: tuple[float, ...], slots: int, expected: float) -> None:
        """Of 1, 2 and 3 seconds in two slots, the third starts when the first has ended: 1 + 3."""
        assert ideal([Job(each, (), event) for event, each in enumerate(seconds)], slots) == expected

    def test_a_job_starts_when_all_that_it_waits_for_have_ended(self) -> None:
        assert ideal([Job(1.0), Job(4.0), Job(2.0, (0, 1))], 5) == 6.0

    def test_the_longest_chain_goes_first(self) -> None:
        """Two single jobs came before a chain of three. In turn, two at a time, they would take 4 seconds."""
        chain = [Job(1.0, (), 2), Job(1.0, (2,), 3), Job(1.0, (3,), 4)]
        assert ideal([*SINGLE[:2], *chain], 2) == 3.0

    def test_it_passes_by_no_more_than_the_last_rounds(self) -> None:
        """Five came before it. Its first call passes three of them, its second none: 5 seconds. First of all: 4."""
        assert ideal([*SINGLE, *CHAIN], 2) == 5.0

    def test_heights_count_events_not_calls(self) -> None:
        """Two calls of event 0, one behind the other; event 1 waits for the second; event 2 for nobody."""
        assert heights([Job(1.0), Job(1.0, (0,)), Job(1.0, (1,), 1), Job(1.0, (), 2)]) == [2, 1, 1]

    def test_bounds(self) -> None:
        jobs = [*SINGLE, *CHAIN]
        assert (work(jobs), critical_path(jobs)) == (8.0, 3.0)
        assert [bound(jobs, slots) for slots in (1, 2, 4)] == [8.0, 4.0, 3.0]

    @given(st.data())
    def test_it_lies_between_the_bound_and_that_of_any_busy_schedule(self, data: st.DataObject) -> None:
        """Slots that are never idle without need end by work/m + (1 - 1/m) critical path (Graham, 1969)."""
        jobs: list[Job] = []
        for at in range(data.draw(st.integers(1, 30))):
            after = data.draw(st.sets(st.integers(0, at - 1), max_size=3)) if at else set()
            jobs.append(Job(data.draw(st.integers(1, 9)), tuple(sorted(after)), at // 2))
        slots = data.draw(st.integers(1, 8))
        most = work(jobs) / slots + (1 - 1 / slots) * critical_path(jobs)
        assert bound(jobs, slots) <= ideal(jobs, slots) <= most + 1e-9
        assert (ideal(jobs, 1), ideal(jobs, len(jobs))) == (work(jobs), critical_path(jobs))


class TestAuthors:
    @pytest.mark.parametrize(
        ("slots", "batch", "together", "expected"),
        [
            (10, 2, 10, 4 + 2 + 3),  # the longer of the two choices, of the two users' reflections, of the items'
            (10, 2, 1, 12),  # one call at a time
            (1, 2, 10, 12),
            (10, 1, 10, 6 + 6),  # one event at a time
        ],
    )
    def test_all_calls_of_a_kind_end_before_the_next_kind(
        self, slots: int, batch: int, together: int, expected: float
    ) -> None:
        assert as_the_authors([*FIRST, *SECOND], slots, batch, together) == expected

    def test_a_group_ends_before_the_next_begins(self) -> None:
        """Choices of 3, 1, 1 and 1 seconds, two together: 3 + 1; with a free slot for each as it comes: 3."""
        assert as_the_authors([Job(each, (), event) for event, each in enumerate((3.0, 1.0, 1.0, 1.0))], 2, 4, 2) == 4

    def test_who_chose_right_is_left_out_of_the_second_round(self) -> None:
        again = [Job(5.0, (), 0, path) for path in TWO_ROUNDS[3:]]
        assert as_the_authors([*FIRST, *again, *SECOND], 10, 2, 10) == 9 + 15


class TestJobs:
    def test_both_sides_reflect_on_one_choice_and_are_waited_for_by_the_next(self) -> None:
        assert waits([step(1, "u", "i", "n", TWO_ROUNDS)]) == [(), (0,), (0,), (1, 2), (3,), (3,)]

    def test_a_call_that_asks_again_follows_what_it_corrects(self) -> None:
        paths = ("choose/r1", "choose/r1/reask", "reflect.user/r1", "reflect.user/r1/reask", "reflect.item/r1")
        assert waits([step(1, "u", "i", "n", paths)]) == [(), (0,), (1,), (2,), (1,)]

    @pytest.mark.parametrize(
        ("second", "first_call_waits_for"),
        [
            (step(2, "u", "j", "m"), (1,)),  # the user's memory, released while the item still reflects
            (step(2, "v", "i", "m"), (1, 2)),  # the item, at the end of its event
            (step(2, "v", "j", "i"), (1, 2)),  # the same item, not taken
            (step(2, "v", "n", "m"), ()),  # an item that was only read
        ],
    )
    def test_an_event_waits_for_what_it_reads(self, second: Committed, first_call_waits_for: tuple[int, ...]) -> None:
        assert waits([step(1, "u", "i", "n"), second])[3] == first_call_waits_for

    def test_published_items_are_waited_for_where_they_reflect(self) -> None:
        """Periods of ten: at 2 the user reads the item as of 0, the item itself as of now; at 12 both as of 10."""
        records = [step(1, "u", "i", "n"), step(2, "v", "i", "n"), step(12, "w", "i", "n")]
        assert waits(records, 10) == [(), (0,), (0,), (), (3,), (1, 2, 3), (4, 5), (6,), (4, 5, 6)]

    def test_latencies_go_by_the_ids_of_calls(self) -> None:
        jobs = jobs_of([step(1, "u", "i", "n")], {f"u/i/1#{path}": float(len(path)) for path in ONE_ROUND}.__getitem__)
        assert [job.seconds for job in jobs] == [9.0, 15.0, 15.0]

    def test_a_failed_unit_is_refused(self) -> None:
        record = step(1, "u", "i", "n", ("choose/r1",))
        record.units = [("choose/r1", "no title")]
        with pytest.raises(ValueError, match="a unit of u/i/1 failed"):
            jobs_of([record], lambda call: 1.0)


CALLS = ("choose/r1", "reflect.user/r1", "fuse/r1/extract", "fuse/r1", "reflect.item/r1")
CURRENT, DRAFT = "grouping:current", "grouping:draft"


def member(time: int, user: str, item: str, negative: str, paths: tuple[str, ...] = CALLS) -> Committed:
    """A step of AgentCF++, which writes the negative too and looks at the grouping."""
    made = step(time, user, item, negative, paths)
    event = msgspec.structs.replace(
        made.event, writes=(f"user:{user}", f"item:{item}", f"item:{negative}"), reads=(CURRENT,)
    )
    return Committed(event, [], [], made.calls, made.units, [])


def regrouped(time: int, kind: str, target: str, reads: tuple[str, ...], paths: tuple[str, ...] = ()) -> Committed:
    """An event of a formation, behind all steps of its time."""
    event = Event(
        id=f"{kind}/{time}", kind=f"grouping.{kind}", order=(0, time, "~"), time=time, writes=(target,), reads=reads
    )
    return Committed(event, [], [], [(path, "") for path in paths], [], [])


FORMED = ("tags/1/u", "tags/2/v", "tags/2/v/reask", "group/cluster", "name/1", "name/2")
USERS = ("user:u", "user:v", "user:w")


class TestGroupJobs:
    def test_a_step_makes_one_call_after_the_other(self) -> None:
        paths = (*CALLS, *(path.replace("r1", "r2") for path in CALLS))
        jobs = group_jobs_of([member(1, "u", "i", "n", paths)], lambda call: 1.0)
        assert [job.after for job in jobs] == [(), *((at,) for at in range(9))]

    @pytest.mark.parametrize(
        ("second", "first_call_waits_for"),
        [
            (member(2, "u", "j", "m"), (3,)),  # the user, once it has fused, while the items still reflect
            (member(2, "v", "i", "m"), (4,)),
            (member(2, "v", "j", "n"), (4,)),  # the negative, which learns too
            (member(2, "v", "j", "m"), ()),
        ],
    )
    def test_a_step_waits_for_what_it_reads(self, second: Committed, first_call_waits_for: tuple[int, ...]) -> None:
        jobs = group_jobs_of([member(1, "u", "i", "n"), second], lambda call: 1.0)
        assert jobs[5].after == first_call_waits_for

    def test_published_items_are_waited_for_where_they_reflect(self) -> None:
        """Periods of ten: at 2 the user reads the item as of 0, the item itself as of now."""
        records = [member(1, "u", "i", "n"), member(2, "v", "i", "m"), member(12, "w", "i", "n")]
        after = [job.after for job in group_jobs_of(records, lambda call: 1.0, 10)]
        assert (after[5], after[9], after[10]) == ((), (4, 8), (4, 9))

    def test_a_formation_waits_for_all_users_and_everybody_for_it(self) -> None:
        """Tags side by side, then the clusters at once, then names side by side; a step of a new user waits too."""
        records = [
            member(1, "u", "i", "n"),
            member(1, "v", "j", "m"),
            regrouped(1, "form", CURRENT, USERS, FORMED),
            member(2, "w", "k", "l"),
            regrouped(2, "form", CURRENT, USERS, FORMED[:1]),
        ]
        jobs = group_jobs_of(records, lambda call: 1.0)
        assert [(job.name, job.after) for job in jobs[10:15]] == [
            ("tags/1/u", (3, 8)),
            ("tags/2/v", (3, 8)),
            ("tags/2/v/reask", (11,)),
            ("name/1", (10, 12)),
            ("name/2", (10, 12)),
        ]
        assert jobs[15].after == (13, 14)
        assert jobs[20].after == (3, 8, 13, 14, 18)

    def test_with_a_lag_nobody_waits_for_a_formation_before_it_is_adopted(self) -> None:
        records = [
            member(1, "u", "i", "n"),
            regrouped(1, "form", DRAFT, USERS, FORMED[:1]),
            member(2, "v", "j", "m"),
            regrouped(2, "adopt", CURRENT, (DRAFT,)),
            member(3, "w", "k", "l"),
        ]
        jobs = group_jobs_of(records, lambda call: 1.0)
        assert [jobs[at].after for at in (5, 6, 11)] == [(3,), (), (5,)]

    def test_who_joins_is_waited_for_by_nobody(self) -> None:
        join = regrouped(1, "join", CURRENT, ())
        join.event = msgspec.structs.replace(join.event, writes=())
        assert group_jobs_of([join], lambda call: 1.0) == []

    def test_what_it_does_not_know_is_refused(self) -> None:
        failed = member(1, "u", "i", "n", CALLS[:1])
        failed.units = [("choose/r1", "no title")]
        ranking = regrouped(1, "form", CURRENT, ())
        ranking.event = msgspec.structs.replace(ranking.event, kind="ranking")
        for record, problem in ((failed, "a unit of u/i/1 failed"), (ranking, "form/1 is a ranking")):
            with pytest.raises(ValueError, match=problem):
                group_jobs_of([record], lambda call: 1.0)


@pytest.mark.parametrize(
    ("method", "visibility"),
    [
        ("", "latest"),
        ("lag: 5", "latest"),
        ("lag: 9", "latest"),  # put in force behind the next formation
        ("rounds: 2", "every 2 steps"),
        ("groups_by: history", "latest"),
        ("dual: false, lag: 3", "latest"),
    ],
)
def test_with_groups_too_the_engine_takes_the_critical_path(method: str, visibility: str) -> None:
    """Users of two domains, whose groups are formed anew behind every seven of their 24 steps."""
    text = f"""
name: groups
data: {{format: market, users: 8, items: 24, domains: 2, interactions: 6}}
engine: {{visibility: {{items: {visibility}}}}}
method: {{kind: agentcfpp, every: 7, {method}}}
stages: [{{optimize: {{}}}}]
"""
    load = Load("groups", Setup.of(read("groups.yaml", (), text)[0]))
    records, took = virtually(load, 1000, seconds)
    jobs = load.jobs(records, seconds)
    kinds = Counter(record.event.kind.rpartition(".")[2] for record in records)
    assert (kinds["interaction"], kinds["form"], kinds["adopt"]) == (8 * 3, 3, 3 * ("lag" in method))
    assert kinds["join"] >= 2
    assert took == pytest.approx(critical_path(jobs), abs=1e-6) == pytest.approx(ideal(jobs, 1000))
    assert took < 0.9 * work(jobs)


@pytest.mark.parametrize("visibility", ["latest", "every 2 steps"])
def test_with_a_slot_for_each_call_the_engine_takes_the_critical_path(visibility: str) -> None:
    """Eight users with three steps each share twelve items. Nobody queues: any other time is a wait too many or few."""
    text = f"""
name: small
data: {{format: market, users: 8, items: 12, interactions: 6}}
engine: {{visibility: {{items: {visibility}}}}}
method: {{kind: agentcf}}
stages: [{{optimize: {{}}}}]
"""
    load = Load("small", Setup.of(read("small.yaml", (), text)[0]))
    records, took = virtually(load, 1000, seconds)
    jobs = jobs_of(records, seconds, load.span)
    assert (len(records), load.span) == (8 * 3, 2.0 * (visibility != "latest"))
    assert took == pytest.approx(critical_path(jobs), abs=1e-6) == pytest.approx(ideal(jobs, 1000))
    assert took < 0.9 * work(jobs)


def seconds(call: str) -> float:
    """A latency between 1 and 2 seconds that no two calls are likely to share."""
    return 1 + sum(map(ord, call)) % 97 / 97 + len(call) / 1e4
