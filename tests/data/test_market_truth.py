"""The ground truth of an invented market: that it is what users followed, and that the data set holds nothing of it."""

from __future__ import annotations

import numpy as np
import pytest

from simengine.data import MarketSettings, load
from simengine.data.market_truth import market_truth

DAY = 86_400
OPENING = 1_700_000_000


def settings(**said):
    return MarketSettings(format="market", **said)


def shares(dataset, truth) -> np.ndarray:
    """Users x interests: the share of each user's items that belong to each interest."""
    counts = np.zeros((len(truth.users), len(truth.interests)))
    for user, items in dataset.own.items():
        for item in sorted(items):
            counts[truth.position[user], truth.item_interest[item]] += 1
    return counts / counts.sum(axis=1, keepdims=True)


def agreement(said) -> float:
    """The mean over users of the correlation of what they took with what they like."""
    truth = market_truth(said)
    taken = shares(load(said), truth)
    liked = [truth.taste(user) for user in truth.users]
    return float(np.mean([np.corrcoef(one, other)[0, 1] for one, other in zip(taken, liked, strict=True)]))


def test_equal_settings_have_equal_truths():
    one, other = market_truth(settings(seed=3)), market_truth(settings(seed=3))
    assert np.array_equal(one.tastes, other.tastes)
    assert one.item_interest == other.item_interest
    assert not np.array_equal(one.tastes, market_truth(settings(seed=4)).tastes)


def test_users_take_what_they_like_and_on_the_null_market_they_do_not():
    assert agreement(settings(users=200, interactions=12)) > 0.7
    assert abs(agreement(settings(users=200, interactions=12, planted=False))) < 0.1


def test_the_null_market_has_the_same_truth_to_no_effect():
    planted, null = market_truth(settings()), market_truth(settings(planted=False))
    assert np.array_equal(planted.tastes, null.tastes)
    assert (planted.planted, null.planted) == (True, False)


def test_tastes_are_mixtures_and_items_say_what_they_are():
    said = settings(interests=4, domains=2, items=40)
    truth, dataset = market_truth(said), load(said)
    assert truth.tastes.shape == (40, 2, 4)
    assert truth.tastes.sum(axis=2) == pytest.approx(np.ones((40, 2)))
    for name, item in dataset.items.items():
        domain, style, *features = item.category.split("; ")
        assert domain == truth.domains[truth.item_domain[name]]
        interest, place = truth.item_interest[name], truth.item_domain[name]
        assert {style, *features} <= set(truth.domain_phrases[interest][place]) <= set(truth.phrases[interest])


@pytest.mark.parametrize("carry", [0.0, 0.5, 1.0])
def test_tastes_are_carried_over_domains_as_strongly_as_stated(carry):
    # Two numbers are one and the same with the chance `carry`, else independent: so that is their correlation. The
    # logarithm of a taste is such a number but for one constant a user, which the mean over interests takes away.
    tastes = np.log(market_truth(settings(users=400, domains=2, interests=12, carry=carry)).tastes)
    films, albums = (tastes[:, at] - tastes[:, at].mean(axis=1, keepdims=True) for at in (0, 1))
    assert np.corrcoef(films.ravel(), albums.ravel())[0, 1] == pytest.approx(carry, abs=0.05)


def test_a_fashion_rises_and_falls_among_those_who_follow_it():
    fashion = {"interest": "Glass", "share": 0.4, "from_day": 30, "days": 40, "strength": 100}
    said = settings(users=300, interactions=16, clock="time", fashions=[fashion])
    truth, dataset = market_truth(said), load(said)
    ((_, followers),) = truth.fashions
    assert len(followers) == 120
    share = {}
    for follows in (True, False):
        for when, start, end in (("before", 0, 30), ("at its height", 40, 60), ("after", 70, 400)):
            taken = [
                truth.interests[truth.item_interest[row.item]] == "Glass"
                for row in dataset.train
                if (truth.position[row.user] in followers) == follows and start <= (row.time - OPENING) / DAY < end
            ]
            share[follows, when] = sum(taken) / len(taken)
    assert share[True, "at its height"] > 0.5 > 0.3 > max(share[True, "before"], share[True, "after"])
    assert max(share[False, when] for when in ("before", "at its height", "after")) < 0.25


def by_domain(dataset, truth, places=None) -> np.ndarray:
    """Domains x users x interests: the share of what each user took in a domain that belongs to each interest."""
    counts = np.zeros((len(truth.domains), len(truth.users), len(truth.interests)))
    for user, items in dataset.own.items():
        for item in sorted(items):
            counts[truth.item_domain[item], truth.position[user], truth.item_interest[item]] += 1
    return counts / np.maximum(counts.sum(axis=2, keepdims=True), 1)


def crossing(said) -> float:
    """The mean correlation over users of what they took in one domain with what they took in the other."""
    first, second = by_domain(load(said), market_truth(said))
    both = [
        np.corrcoef(one, other)[0, 1] for one, other in zip(first, second, strict=True) if one.std() and other.std()
    ]
    return float(np.mean(both))


def test_what_a_user_likes_in_one_domain_shows_in_the_other_and_on_the_null_market_it_does_not():
    size = {"users": 200, "items": 240, "interactions": 20, "domains": 2, "skew": 0.0}
    assert crossing(settings(**size)) > 0.5
    assert abs(crossing(settings(**size, carry=0.0))) < 0.1
    assert abs(crossing(settings(**size, planted=False))) < 0.1


def test_what_is_carried_over_is_told():
    truth = market_truth(settings(users=300, domains=2, interests=6, carry=0.5))
    ratio = np.log(truth.tastes[:, 0] / truth.tastes[:, 1])
    # Where an interest has one number for both domains, the two tastes differ by what adds them up to 1, the same for
    # all such interests of the user.
    for user in range(300):
        same = ratio[user, truth.carried[user]]
        assert same == pytest.approx(np.full(len(same), same[0] if len(same) else 0))
    assert truth.carried.mean() == pytest.approx(0.5, abs=0.05)


def test_a_fashion_of_a_domain_stays_there_and_is_followed_by_those_of_one_taste():
    fashion = {"interest": "Glass", "share": 0.25, "from_day": 0, "days": 140, "strength": 100, "domain": "film",
               "among": "Harbour"}  # fmt: skip
    said = settings(users=200, items=240, interactions=12, domains=2, fashions=[fashion])
    truth = market_truth(said)
    ((_, followers),) = truth.fashions
    harbour = truth.tastes[:, :, truth.interests.index("Harbour")].mean(axis=1)
    assert len(followers) == 50
    assert harbour[sorted(followers)].min() >= harbour[sorted(set(range(200)) - followers)].max()

    glass = truth.interests.index("Glass")
    before, after = (by_domain(load(one), truth)[:, sorted(followers), glass].mean(axis=1)
                     for one in (said.model_copy(update={"fashions": ()}), said))  # fmt: skip
    assert after[1] > before[1] + 0.3
    assert abs(after[0] - before[0]) < 0.06
    null = said.model_copy(update={"planted": False})
    without = null.model_copy(update={"fashions": ()})
    assert load(null).own == load(without).own


def test_a_fashion_leaves_those_who_do_not_follow_it_as_they_were():
    fashion = {"interest": "Glass", "share": 0.4, "from_day": 0, "days": 400}
    plain, fashionable = settings(), settings(fashions=[fashion])
    ((_, followers),) = market_truth(fashionable).fashions
    before, after = load(plain), load(fashionable)
    changed = {user for user in before.users if before.own[user] != after.own[user]}
    assert changed and {market_truth(plain).position[user] for user in changed} <= followers


def test_the_data_set_holds_nothing_of_the_truth():
    # What is told of an item beside its title and its category is drawn by lot; the domain is no secret.
    for item in load(settings(domains=2)).items.values():
        assert set(item.extra) == {"release_date", "price", "brand", "description"}
        assert item.domain == item.category.split("; ")[0]
