from __future__ import annotations

import random

import msgspec
import pytest
from interec_games import make_shop, shop_data

from simengine.data import Item
from simengine.methods.interec.bus import Bus, Candidates, Snapshot
from simengine.methods.interec.faults import Fault
from simengine.methods.interec.results import Fetched, Narrowed, Ranked
from simengine.methods.interec.tools import FILTERED, RANKED, TOOLS, Outcome, Shop

SHOP = make_shop()


def _use(tool: str, given: dict[str, object], at: Candidates | None = None, shop: Shop = SHOP) -> Outcome:
    typed = TOOLS[tool].given.model_validate_json(msgspec.json.encode(given))
    return TOOLS[tool].run(typed, at or Candidates(), shop, random.Random(3))


def _code(tool: str, given: dict[str, object], at: Candidates | None = None, shop: Shop = SHOP) -> str:
    with pytest.raises(Fault) as caught:
        _use(tool, given, at, shop)
    return caught.value.code


@pytest.fixture(scope="module")
def large() -> Shop:
    items = [Item(f"g{at}", f"Game number {at}", "Action") for at in range(1, 2501)]
    return make_shop(shop_data(items, {"u": ("g2500", "g1")}))


def test_look_up_leaves_the_candidates_alone() -> None:
    at = Candidates((1, 2))
    result, after = _use("look_up", {"sql": "SELECT price FROM items WHERE title = 'Half-Life 2'"}, at)
    assert (str(result), after) == ("price: 9.99", at)


def test_a_look_up_is_shown_in_five_hundred_tokens(large: Shop) -> None:
    text = str(_use("look_up", {"sql": "SELECT *, title || title || title || title FROM items"}, shop=large)[0])
    assert "more rows are not shown" in text
    assert len(text) < 512 * 4 + 40


def test_a_hard_filter_keeps_what_the_query_gives_and_its_order_if_it_has_one() -> None:
    ranked = Candidates((8, 6, 7, 1), "popularity")
    result, after = _use("hard_filter", {"sql": "SELECT id FROM candidates WHERE tags = 'RPG'"}, ranked)
    assert after == Candidates((8, 6, 7), "popularity")
    _, after = _use("hard_filter", {"sql": "SELECT id FROM candidates ORDER BY price, id LIMIT 2"}, ranked)
    assert after == Candidates((6, 1), "query")
    result, after = _use("hard_filter", {"sql": "SELECT id FROM items WHERE price = 9.99"}, ranked)
    assert (result, after.ids) == (Narrowed(1, outside=4), (1,))


@pytest.mark.parametrize(
    ("sql", "ids", "code"),
    [
        ("SELECT id FROM candidates WHERE price > 1000", None, "no_match"),
        ("SELECT id FROM candidates WHERE price > 20", (1, 2), "no_match"),
        ("SELECT title FROM candidates", None, "no_ids"),
        ("SELECT title AS id FROM candidates", None, "no_ids"),
        ("SELECT id, id FROM candidates", None, "no_ids"),
        ("SELECT a.id FROM items a, items b", None, "too_many_rows"),
        ("SELECT id FROM candidates", (), "empty_bus"),
        ("SELECT id FROM candidates WHERE tags = 'Dancing'", None, "not_found"),
    ],
)
def test_a_hard_filter_that_fails(sql: str, ids: tuple[int, ...] | None, code: str) -> None:
    assert _code("hard_filter", {"sql": sql}, Candidates(ids)) == code


def test_of_too_many_the_first_of_an_order_or_a_seeded_sample_are_kept(large: Shop) -> None:
    result, after = _use("hard_filter", {"sql": "SELECT id FROM candidates ORDER BY id DESC"}, shop=large)
    assert (result, after.ids) == (Narrowed(FILTERED, "first"), tuple(range(2500, 1500, -1)))
    result, after = _use("hard_filter", {"sql": "SELECT id FROM candidates"}, shop=large)
    assert result == Narrowed(FILTERED, "sample")
    assert after.ids is not None and list(after.ids) == sorted(set(after.ids))
    assert after.ids[-1] > 2400
    assert after == _use("hard_filter", {"sql": "SELECT id FROM candidates"}, shop=large)[1]


def test_similarity_is_the_mean_of_shared_users_over_the_root_of_totals() -> None:
    # Portal was taken by 2, Portal 2 by 3, and both by 2; Half-Life 2 by 3, with Portal by 1, with Portal 2 by 2
    scores = SHOP.similar(["g1", "g2"])
    assert scores[3] == pytest.approx((1 / 6**0.5 + 2 / 3) / 2)
    assert scores[0] == pytest.approx(2 / 6**0.5 / 2)
    assert scores[4] == 0
    assert SHOP.similar([]).tolist() == [0.0] * 16


def test_a_soft_filter_keeps_the_top_of_the_catalogue_with_scores() -> None:
    result, after = _use("soft_filter", {"titles": ["Portal", "Doom", "Twins"]})
    assert after.ids == (2,)  # 5% of 16 items is one
    assert after.order == "similarity"
    assert after.similarity == (pytest.approx(2 / 6**0.5),)
    assert isinstance(result, Narrowed)
    assert (result.seeds.unmatched, result.seeds.ambiguous) == (("Doom",), ("Twins",))


@pytest.mark.parametrize(
    ("tool", "titles", "code"),
    [
        ("soft_filter", ["Doom"], "not_found"),
        ("soft_filter", ["Twins"], "ambiguous"),
        ("soft_filter", ["b"], "no_match"),  # nobody took it
        ("store", ["Portal 3"], "not_found"),
        ("store", ["Twins"], "ambiguous"),
    ],
)
def test_titles_that_lead_nowhere(tool: str, titles: list[str], code: str) -> None:
    assert _code(tool, {"titles": titles}) == code


def test_store_takes_titles_in_their_order_and_says_which_it_did_not_find() -> None:
    result, after = _use("store", {"titles": ["half life 2", "Portal 3", "原神", "Half-Life 2"]})
    assert after == Candidates((4, 6))
    assert str(result) == "2 candidates are stored; not found: 'Portal 3'"


def test_ranking_by_popularity_takes_out_what_is_liked_or_unwanted() -> None:
    _, after = _use("rank", {"unwanted": ["Portal 2", "Twins"]})
    assert after.ids is not None
    assert after.ids[:3] == (4, 1, 3)  # Half-Life 2 has 3 visits, Portal and Half-Life have 2
    assert not {2, 11, 12} & set(after.ids)


def test_a_liked_list_forces_preference_and_what_cannot_be_scored_comes_last() -> None:
    result, after = _use("rank", {"by": "popularity", "liked": ["Half-Life"]}, Candidates((1, 2, 3, 4)))
    assert after == Candidates((4, 2, 1), "preference")
    assert isinstance(result, Ranked) and result.by == "preference"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"by": "preference"}, "not by preference, since no liked item can be scored"),
        ({"liked": ["Doom"]}, "not by preference, since no liked item can be scored; not found: 'Doom'"),
        ({"by": "similarity"}, "not by similarity, since no soft filter has come before"),
    ],
)
def test_a_ranking_that_has_nothing_to_go_by_is_by_popularity_and_says_so(given: dict[str, object], said: str) -> None:
    result, after = _use("rank", given)
    assert str(result) == f"16 candidates, ranked by popularity; {said}"
    assert after.order == "popularity"


def test_ranking_by_similarity_goes_by_the_scores_that_travel_with_the_ids() -> None:
    at = Candidates((5, 6, 7), "popularity", (0.1, 0.3, 0.2))
    _, filtered = _use("hard_filter", {"sql": "SELECT id FROM candidates WHERE id <> 6"}, at)
    assert filtered.similarity == (0.1, 0.2)
    assert _use("rank", {"by": "similarity"}, filtered)[1] == Candidates((7, 5), "similarity", (0.2, 0.1))


def test_a_ranking_keeps_a_hundred_and_reaches_the_last_item(large: Shop) -> None:
    _, after = _use("rank", {}, shop=large)
    assert after.ids is not None
    assert (len(after.ids), after.ids[:3]) == (RANKED, (1, 2500, 2))


def test_nothing_is_left_to_rank() -> None:
    assert _code("rank", {"unwanted": ["b"]}, Candidates((5,))) == "no_match"


def test_fetch_gives_the_first_and_begins_again() -> None:
    result, after = _use("fetch", {"n": 2}, Candidates((8, 3, 1), "query"))
    assert isinstance(result, Fetched)
    assert ([it.item for it in result.items], result.candidates, result.by) == (["g8", "g3"], 3, "query")
    assert after == Candidates()
    unordered, _ = _use("fetch", {})
    assert isinstance(unordered, Fetched)
    assert [it.id for it in unordered.items] == [2, 4, 1, 3, 6]
    assert _code("fetch", {}, Candidates(())) == "empty_bus"


def test_a_snapshot_is_plain_data_and_nothing_later_changes_it() -> None:
    bus = Bus(16)
    result, after = _use("store", {"titles": ["Portal"]})
    bus.done(1, "store", "{}", result, after)
    kept = bus.snapshot()
    bus.failed(2, "look_up", "{}", Fault("comment", "no"))
    bus.reset()
    assert (len(kept.records), kept.candidates.ids) == (1, (1,))
    assert msgspec.json.decode(msgspec.json.encode(kept), type=Snapshot) == kept
    other = Bus(16, kept)
    assert (other.count, bus.count, len(bus.records)) == (1, 16, 2)
