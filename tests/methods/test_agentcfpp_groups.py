"""Interest groups of AgentCF++: how they come to be, from when they are in force, and what their members are shown."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import pytest
import runs

from simengine.data import Unit
from simengine.errors import CallFailed, InputError
from simengine.llm.backends.scripted import Answer, Scripted
from simengine.llm.request import Request
from simengine.methods.agentcfpp_settings import AgentCFppSettings
from simengine.testing import MethodContract

HEADER = "user_id:token|item_id_list:token_seq|item_id:token\n"
USERS, STEPS = "abcd", (1, 2, 3)
# Each of four users takes items of his own, at the same times: a1, b1, c1, d1, then a2, b2, ... Item a0 is given to a.
ITEMS = [f"{user}{step}" for user in USERS for step in (0, *STEPS, 4)]


def _rows(steps: Iterable[int]) -> str:
    return "".join(
        f"{user}|{' '.join(f'{user}{at}' for at in range(step))}|{user}{step}\n" for user in USERS for step in steps
    )


FILES = {
    "x.train.inter": HEADER + _rows(STEPS),
    "x.test.inter": HEADER + _rows([4]),
    "x.item": "item_id:token|title:token_seq|category:token_seq\n"
    + "".join(f"{name}|Thing {name}|Kind {name[0]}\n" for name in ITEMS),
}
SCENARIO = """
name: groups
data: {{format: atomic, path: {path}, noun: thing, clock: step}}
llm: {{temperature: 0.7}}
method: {{kind: agentcfpp, every: 4, view: 3}}
stages: [{{optimize: {{}}}}, {{rank: {{}}}}]
"""
TAGS = {"a": "jazz, soul", "b": "jazz", "c": "soul, folk", "d": "metal"}


class Told:
    """Answers each call with its id; tags come from a table, by user or by formation and user (``2/a``)."""

    def __init__(self, tags: Mapping[str, str] = TAGS, broken: Iterable[str] = ()) -> None:
        self.tags = tags
        self.broken = tuple(broken)
        self.asked: dict[str, Request] = {}

    def __call__(self, request: Request) -> Answer:
        call = request.call
        self.asked[call] = request
        if any(call.startswith(name) for name in self.broken):
            return CallFailed("the server refused the request", reason="rejected")
        titles = request.slots.get("titles", ())
        if request.task == "choose":
            return f"Chosen thing: {titles[1]}\nExplanation: because"
        if request.task in ("reflect.user", "fuse.merge"):
            return f"My updated self-introduction: {call}"
        if request.task == "reflect.item":
            return "\n".join(f"The updated description of the {at} thing is: {call}" for at in ("first", "second"))
        if request.task == "group.tags":
            formation, user = call.split("/")[1].partition("#")[0], call.split("/")[3]
            return f"Tags: {self.tags.get(f'{formation}/{user}', self.tags[user])}"
        if request.task == "group.name":
            return f"My group name: Friends of {request.slots['tags'][0]}"
        return "\n".join(["Rank:", *titles])

    def views(self, event: str) -> list[str]:
        """What the first prompt of a step or a ranking shows of groups."""
        call = f"{event}#rank" if event.startswith("rank") else f"{event}#choose/r1"
        found = list(self.asked[call].slots.get("views", ()))
        text = self.asked[call].messages[-1].content
        assert all(view in text for view in found)
        assert bool(found) == ("interests like yours" in text)
        return found


Run = Callable[..., Path]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    for name, content in FILES.items():
        (tmp_path / name).write_text(content.replace("|", "\t"), encoding="utf-8")

    def act(model: Told, *sets: str) -> Path:
        text = SCENARIO.format(path=tmp_path)
        return Path(runs.run(tmp_path / "run", *sets, text=text, backend=Scripted(model)).path)

    return act


def _groupings(folder: Path, agent: str = "grouping:current") -> list[dict[str, list[str]]]:
    """The members of each group by its id, of each version of the grouping."""
    return [
        {group["id"]: group["members"] for group in memory["value"]}
        for event in runs.events(folder)
        for memory in event.get("memories", ())
        if memory["agent"] == agent and memory["slot"] == "groups"
    ]


def _lines(*names: str) -> str:
    return "\n".join(f'- "Thing {name}" is a thing filed under: Kind {name[0]}.' for name in names)


def _step(name: str) -> str:
    return f"interaction/{name[0]}/{name}/{int(name[1]) + 1}"


# -- forming ---------------------------------------------------------------------------------------------------------


def test_groups_are_formed_behind_every_so_many_interactions(run: Run) -> None:
    folder = run(Told())
    kinds = [event["kind"] for event in runs.events(folder)]
    assert kinds == (["interaction"] * 4 + ["grouping.form", "grouping.join"]) * 3 + ["ranking"] * 4


def test_groups_are_formed_behind_every_period_that_another_follows(run: Run) -> None:
    """Everybody takes something at each step: behind the last who does so, but not behind the last step of all."""
    folder = run(Told(), "method.every=1 step")
    found = runs.events(folder)
    forms = [at for at, event in enumerate(found) if event["kind"] == "grouping.form"]
    taken = [event["time"] for event in found if event["kind"] == "interaction"]
    assert [found[at]["time"] for at in forms] == sorted(set(taken))[:-1]
    assert [event["time"] for at in forms for event in (found[at - 1], found[at + 2])] == [
        time for at in forms for time in (found[at]["time"], found[at]["time"] + 1)
    ]


@pytest.mark.parametrize(
    ("every", "unit", "times", "behind"),
    [
        ("2 steps", "step", [2, 2, 3, 3, 4, 6, 7, 9], [4, 5, 7]),  # steps 2 and 3, 4 and 5, 6 and 7
        ("1d", "s", [0, 86_399, 86_400, 5 * 86_400, 5 * 86_400], [2, 3]),
        ("1d", "ms", [0, 86_399_999, 86_400_000], [2]),
        ("0.5 h", "s", [0, 1800, 3600], [1, 2]),
        ("1w", "s", [0, 1, 2], []),
        (2, "s", [0, 0, 0, 0, 0], [2, 4]),
    ],
)
def test_periods_end_where_the_clock_says(every: int | str, unit: Unit, times: list[int], behind: list[int]) -> None:
    settings = AgentCFppSettings(kind="agentcfpp", every=every)
    assert list(settings.formed_behind(times, unit)) == behind
    assert settings.grouped_behind(times, unit) == (behind[0] if behind else None)


def test_a_period_that_the_clock_does_not_count_is_refused_before_anything_is_made(run: Run, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="every 1w: the clock of these data counts steps"):
        run(Told(), "method.every=1w")
    assert not (tmp_path / "run").exists()


def test_users_of_one_tag_are_a_group_and_the_largest_are_kept(run: Run) -> None:
    model = Told()
    folder = run(model, "method.kept=2")
    (first, *_) = _groupings(folder)
    assert first == {"group:1.1-friends-of-jazz": ["a", "b"], "group:1.2-friends-of-soul": ["a", "c"]}
    asked = [call for call in model.asked if call.startswith("grouping.form/1#")]
    assert asked == [*(f"grouping.form/1#tags/{at}/{user}" for at, user in enumerate(USERS, 1)),
                     "grouping.form/1#name/1", "grouping.form/1#name/2"]  # fmt: skip


def test_tags_come_from_the_fused_memories(run: Run) -> None:
    model = Told()
    run(model)
    assert model.asked["grouping.form/2#tags/1/a"].slots["memory"] == f"{_step('a2')}#fuse/r1"


def test_tags_of_one_meaning_are_one_interest(run: Run) -> None:
    tags = {"a": "slow jazz", "b": "jazz, polka", "c": "jazz music", "d": "polka music"}
    model = Told(tags)
    folder = run(model, "method.clusters=2")
    (first, *_) = _groupings(folder)
    assert list(first.values()) == [["a", "b", "c"], ["b", "d"]]
    assert model.asked["grouping.form/1#name/1"].slots["tags"] == ("slow jazz", "jazz", "jazz music")


def test_members_join_their_groups_at_the_time_of_the_forming(run: Run) -> None:
    folder = run(Told(), "method.kept=1")
    joins = runs.events(folder, "grouping.join")
    assert [event["time"] for event in joins] == [2, 3, 4]
    assert joins[1]["edges"] == [
        {"user": f"user:{name}", "node": "group:2.1-friends-of-jazz", "kind": "membership", "time": 3} for name in "ab"
    ]


def test_groups_follow_what_users_become(run: Run) -> None:
    """The second time b has gone over to metal; the groups of the first time are still told by the log."""
    folder = run(Told({**TAGS, "2/b": "metal", "3/b": "metal"}), "method.kept=1")
    assert _groupings(folder) == [
        {"group:1.1-friends-of-jazz": ["a", "b"]},
        {"group:2.1-friends-of-soul": ["a", "c"]},
        {"group:3.1-friends-of-soul": ["a", "c"]},
    ]


def test_whose_tags_cannot_be_read_keeps_the_former_ones(run: Run) -> None:
    folder = run(Told({**TAGS, "2/b": "???"}, broken=["grouping.form/3#tags/1"]), "method.kept=1")
    assert [list(groups.values()) for groups in _groupings(folder)] == [[["a", "b"]]] * 3
    failures = runs.report(folder).failures
    assert failures == {"tags: empty": 1, "tags: rejected": 1}


@pytest.mark.parametrize("broken", ["grouping.form/2#tags", "grouping.form/2#name"])
def test_where_nothing_can_be_formed_the_former_groups_stay(broken: str, run: Run) -> None:
    model = Told(broken=[broken])
    folder = run(model, "method.kept=1")
    assert [next(iter(groups)) for groups in _groupings(folder)] == [
        "group:1.1-friends-of-jazz",
        "group:3.1-friends-of-jazz",
    ]
    assert [event["event"] for event in runs.events(folder, "grouping.join")] == [
        "grouping.form/1>.0",
        "grouping.form/3>.0",
    ]
    assert model.views(_step("a3"))


def test_a_group_without_a_name_is_none(run: Run) -> None:
    folder = run(Told(broken=["grouping.form/1#name/1"]), "method.kept=2")
    assert list(_groupings(folder)[0]) == ["group:1.1-friends-of-soul"]


def test_a_failed_clustering_leaves_the_former_groups(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    from simengine.errors import UnitFailed
    from simengine.scenario import tools

    async def broken(*_: object) -> list[int]:
        raise UnitFailed("the embedding model gave NaN", reason="embedding")

    monkeypatch.setattr(tools, "cluster_texts", broken)
    folder = run(Told())
    assert _groupings(folder) == []
    assert runs.report(folder).failures == {"group: embedding": 3}


# -- views -----------------------------------------------------------------------------------------------------------


def test_before_groups_are_formed_there_are_no_views(run: Run) -> None:
    model = Told()
    run(model)
    assert [model.views(_step(f"{user}1")) for user in USERS] == [[], [], [], []]


def test_a_view_shows_what_members_took_last_before_the_reader_and_nothing_else(run: Run) -> None:
    model = Told()
    run(model, "method.kept=2")
    # groups: jazz a, b; soul a, c. Steps go a2, b2, c2, d2, a3, ...
    assert model.views(_step("a2")) == [
        f'In the group "Friends of jazz":\n{_lines("b1", "a1")}',
        f'In the group "Friends of soul":\n{_lines("c1", "a1")}',
    ]
    assert model.views(_step("b2")) == [f'In the group "Friends of jazz":\n{_lines("a2", "b1", "a1")}']
    assert model.views(_step("c2")) == [f'In the group "Friends of soul":\n{_lines("a2", "c1", "a1")}']
    assert model.views(_step("d2")) == []
    assert model.views(_step("c3")) == [f'In the group "Friends of soul":\n{_lines("a3", "c2", "a2")}']
    assert model.views("rank/b/B/1") == [f'In the group "Friends of jazz":\n{_lines("b3", "a3", "b2")}']


def test_a_view_is_a_message_from_the_group(run: Run) -> None:
    folder = run(Told(), "method.kept=1")
    event = next(event for event in runs.events(folder) if event["event"] == _step("b2"))
    view, choice = event["messages"][0], event["messages"][3]
    assert view == {
        "id": f"{_step('b2')}#choose/r1.0",
        "sender": "group:1.1-friends-of-jazz",
        "recipient": "user:b",
        "kind": "view",
        "body": [
            {"item": "a2", "title": "Thing a2", "user": "a", "time": 3},
            {"item": "b1", "title": "Thing b1", "user": "b", "time": 2},
            {"item": "a1", "title": "Thing a1", "user": "a", "time": 2},
        ],
        "because": ["grouping:current/groups@1"],
    }
    assert choice["kind"] == "choice" and view["id"] in choice["because"]


def test_with_a_lag_groups_take_effect_later(run: Run) -> None:
    """Formed behind the 4th and the 8th interaction, in force behind the 6th and 10th, the last behind the 12th."""
    model = Told()
    folder = run(model, "method.lag=2", "method.kept=1")
    shown = {name: bool(model.views(_step(name))) for name in ("a1", "a2", "b2", "a3", "b3")}
    assert shown == {"a1": False, "a2": False, "b2": False, "a3": True, "b3": True}
    assert _groupings(folder) == _groupings(folder, "grouping:draft")
    order = [event["event"] for event in runs.events(folder) if not event["event"].startswith("rank")]
    at = [order.index(f"grouping.adopt/{number}") for number in (1, 2, 3)]
    assert [order[place - 1] for place in at] == [_step("b2"), _step("b3"), "grouping.form/3"]
    assert [order[place + 1] for place in at[:2]] == ["grouping.adopt/1>.0", "grouping.adopt/2>.0"]
    assert 'In the group "Friends of jazz"' in model.views(_step("b3"))[0]


DOMAINS = "item_id:token|title:token_seq|domain:token\n" + "".join(
    f"{name}|Thing {name}|{'even' if int(name[1]) % 2 == 0 else 'odd'}\n" for name in ITEMS
)


def test_a_view_keeps_to_the_domain(run: Run, tmp_path: Path) -> None:
    (tmp_path / "x.item").write_text(DOMAINS.replace("|", "\t"), encoding="utf-8")
    model = Told()
    run(model, "method.kept=1", "method.shared=true")
    titles = {name: model.views(_step(name)) for name in ("a2", "b2", "a3")}
    assert titles["a2"] == []
    assert titles["b2"] == ['In the group "Friends of jazz":\n- "Thing a2" is a thing.']
    assert titles["a3"] == ['In the group "Friends of jazz":\n- "Thing b1" is a thing.\n- "Thing a1" is a thing.']


def test_targets_that_are_learnt_from_are_part_of_views(run: Run) -> None:
    model = Told()
    run(model, "method.online=true", "method.kept=1")
    assert model.views("rank/b/B/1")[0].endswith(_lines("b3", "a3", "b2"))
    assert model.views("online/b/b4/5")[0].endswith(_lines("a4", "b3", "a3"))


# -- variants --------------------------------------------------------------------------------------------------------


def test_without_layers_tags_come_from_the_one_memory(run: Run) -> None:
    model = Told()
    run(model, "method.dual=false", "method.kept=1")
    assert model.asked["grouping.form/1#tags/1/a"].slots["memory"] == f"{_step('a1')}#reflect.user/r1"
    assert model.views(_step("b2")) == [f'In the group "Friends of jazz":\n{_lines("a2", "b1", "a1")}']


def test_without_sharing_there_are_no_groups(run: Run) -> None:
    model = Told()
    folder = run(model, "method={kind: agentcfpp, shared: false}")
    assert {event["kind"] for event in runs.events(folder)} == {"interaction", "ranking"}
    assert not any("views" in request.slots for request in model.asked.values())


def test_by_history_every_user_falls_into_one_group_and_nobody_is_asked(run: Run, tmp_path: Path) -> None:
    kinds = {"a": "Opera", "b": "Opera", "c": "Metal", "d": "Metal"}
    items = "item_id:token|title:token_seq|category:token_seq\n" + "".join(
        f"{name}|{name}|{kinds[name[0]]}\n" for name in ITEMS
    )
    (tmp_path / "x.item").write_text(items.replace("|", "\t"), encoding="utf-8")
    model = Told()
    folder = run(model, "method.groups_by=history", "method.kept=2")
    assert [sorted(groups.values()) for groups in _groupings(folder)] == [[["a", "b"], ["c", "d"]]] * 3
    assert not [call for call in model.asked if call.startswith("grouping")]
    assert all(list(event["calls"]) == ["group/cluster"] for event in runs.events(folder, "grouping.form"))
    assert "group:1.1-shared-history-1" in _groupings(folder)[0]


@pytest.mark.parametrize(
    ("method", "problem"),
    [
        ("{kind: agentcfpp}", "say behind how many training interactions"),
        ("{kind: agentcfpp, shared: false, every: 3}", "without `shared` there are none"),
        ("{kind: agentcfpp, every: 0}", "every"),
        ("{kind: agentcfpp, every: 0d}", "a period as `1w`"),
        ("{kind: agentcfpp, every: monthly}", "a period as `1w`"),
    ],
)
def test_settings_that_do_not_fit_are_refused(method: str, problem: str, run: Run) -> None:
    with pytest.raises(InputError, match=problem):
        run(Told(), f"method={method}")


# -- what every method keeps -----------------------------------------------------------------------------------------

MARKET = "{format: market, users: 6, items: 24, domains: 2, interests: 3, interactions: 7, seed: 4}"


def _scenario(method: str, llm: str = "{}") -> str:
    return f"""
name: agentcfpp
data: {MARKET}
llm: {llm}
method: {{kind: agentcfpp, {method}}}
stages: [{{optimize: {{}}}}, {{rank: {{}}}}]
"""


class TestFull(MethodContract):
    """With re-formation, in force at once."""

    scenario = _scenario("every: 7")


class TestWithALag(MethodContract):
    """With re-formation that takes effect later, a second round, and answers as JSON."""

    scenario = _scenario("every: 6, lag: 4, rounds: 2, over_limit: reask, user_words: 40", "{output: json}")


class TestOnline(MethodContract):
    """With one memory, groups, and learning from live rankings."""

    scenario = _scenario("every: 5, dual: false, online: true").replace("rank: {}", "rank: {when: live}")
