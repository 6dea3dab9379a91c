"""Wrong scenarios, each with the message that a user sees: what is wrong, where, and what to do."""

from __future__ import annotations

from pathlib import Path

import pytest

from simengine.errors import InputError
from simengine.scenario import read_all
from simengine.scenario.setup import Setup

BASE = """name: small
data: {format: market, users: 3, items: 12, interests: 2, interactions: 4}
method: {kind: agentcf}
stages: [{optimize: {}}, {rank: {}}]
"""

WRONG = {
    "misspelt key": (
        BASE.replace("stages:", "stage:"),
        """s.yaml: 2 problems
  s.yaml:1:1, field stages: the key `stages` is required
    Add `stages: ...`.
  s.yaml:4:1, field stage: the key `stage` is not known here
    Did you mean `stages`?""",
    ),
    "misspelt nested": (
        BASE.replace("kind: agentcf", "kind: agentcf, round: 2"),
        """s.yaml:3:25, field method.round: the key `round` is not known here
  Did you mean `rounds`?""",
    ),
    "wrong type": (
        BASE.replace("users: 3", "users: three"),
        """s.yaml:2:31, field data.users, value three: expected a whole number
  Write digits, as in 10 or 1e4.""",
    ),
    "negative": (
        BASE.replace("users: 3", "users: -3"),
        """s.yaml:2:31, field data.users, value -3: expected a value more than 0
  Correct this value.""",
    ),
    "unknown method": (
        BASE.replace("agentcf", "agentfc"),
        """s.yaml:3:16, field method.kind, value agentfc: expected 'agentcf' or 'agentcfpp' or 'interec'
  Did you mean `agentcf`?""",
    ),
    "unknown format": (
        BASE.replace("market", "atomik"),
        """s.yaml:2:16, field data.format, value atomik: expected one of: atomic, csv, parquet, amazon, movielens, steam, frame, market, audience
  Did you mean `atomic`?""",
    ),
    "unknown ranker": (
        BASE.replace("rank: {}", "rank: {rankers: [pop, bm52]}"),
        """s.yaml:4:49, field stages[1].rank.rankers[1], value bm52: there is no such ranker; there are random, pop, bm25, seqsim, itemknn, bpr, sasrec
  Did you mean `bm25`?""",
    ),
    "k zero": (
        BASE.replace("rank: {}", "rank: {k: [0, 5]}"),
        """s.yaml:4:38, field stages[1].rank.k[0], value 0: expected a value more than 0
  Correct this value.""",
    ),
    "repeated key": (
        BASE + "seed: 1\nseed: 2\n",
        """s.yaml:6:1, field seed: the key `seed` is repeated: it stands on line 5 and again on line 6
  Keep one of them, with the settings of both.""",
    ),
    "repeated nested": (
        BASE + "llm: {model: a, temperature: 0, model: b}\n",
        """s.yaml:5:33, field llm.model: the key `model` is repeated: it stands on line 5 and again on line 5
  Keep one of them, with the settings of both.""",
    ),
    "two stages in one": (
        BASE.replace("[{optimize: {}}, {rank: {}}]", "[{optimize: {}, rank: {}}]"),
        """s.yaml:4:10, field stages[0]: a stage has exactly one key, its kind, and a mapping behind it, as in `rank: {}`
  Correct this value.""",
    ),
    "no stages": (
        BASE.replace("[{optimize: {}}, {rank: {}}]", "[]"),
        """s.yaml:4:9, field stages, value a list of 0: expected a list of at least 1
  Correct this value.""",
    ),
    "unknown stage": (
        BASE.replace("rank: {}", "ranking: {}"),
        """s.yaml:4:27, field stages[1].ranking: the key `ranking` is not known here
  Did you mean `rank`?""",
    ),
    "bad yaml": (
        BASE.replace("{kind: agentcf}", "{kind: agentcf"),
        """s.yaml:4:7: not valid YAML: while parsing a flow mapping: expected ',' or '}', but got ':'
  Correct the YAML there; the cause may stand a line or two before.""",
    ),
    "tab": (
        BASE + "llm:\n\tmodel: x\n",
        """s.yaml:6:1: not valid YAML: while scanning for the next token: found character '\\t' that cannot start any token
  Indent with spaces: YAML allows no tabs there.""",
    ),
    "bad visibility": (
        BASE + "engine: {visibility: {items: weekly}}\n",
        """s.yaml:5:30, field engine.visibility.items, value weekly: say latest, or a period such as `every 1d`, `every 6h`, `every 2 steps`, `every 100 events`
  Correct this value.""",
    ),
    "visibility unit": (
        BASE + "engine: {visibility: {items: every 1d}}\n",
        """field engine.visibility.items: cannot publish every 1d: the clock of these data counts steps
  say `every 2 steps` for data on the step clock, `every 1d` for data with timestamps""",
    ),
    "visibility kind": (
        BASE + "engine: {visibility: {item: latest}}\n",
        """s.yaml:5:23, field engine.visibility.item, value item: expected 'users' or 'items'
  Did you mean `items`?""",
    ),
    "schedule": (
        BASE + "engine: {schedule: parallel}\n",
        """s.yaml:5:20, field engine.schedule, value parallel: expected 'chronological' or a mapping
  Choose one of these.""",
    ),
    "batch zero": (
        BASE + "engine: {schedule: {batch: 0}}\n",
        """s.yaml:5:28, field engine.schedule.batch, value 0: expected a value more than 0
  Correct this value.""",
    ),
    "openai without url": (
        BASE + "llm: {backend: openai, model: m}\n",
        """s.yaml:5:6, field llm: the openai backend needs base_url
  Add `base_url: http://127.0.0.1:8000/v1` under `llm`.""",
    ),
    "openai without model": (
        BASE + "llm: {backend: openai, base_url: http://h/v1}\n",
        """s.yaml:5:6, field llm: the openai backend needs model
  Add `model: NAME` under `llm`.""",
    ),
    "role misspelt": (
        BASE + "llm: {roles: {reflct: {model: strong}}}\n",
        """field llm.roles.reflct: there is no task `reflct` in this scenario
  Did you mean `reflect`? Tasks here: analyse.item, analyse.user, choose, rank, reflect.item, reflect.user, or the part before the dot for several.""",
    ),
    "role of another stage": (
        BASE + "llm: {roles: {review: {model: strong}}}\n",
        """field llm.roles.review: there is no task `review` in this scenario
  Tasks here: analyse.item, analyse.user, choose, rank, reflect.item, reflect.user, or the part before the dot for several.""",
    ),
    "price misspelt": (
        BASE + "llm: {model: gpt-4o-mini, prices: {gpt4o-mini: {input: 1, output: 2}, else: {input: 1, output: 2}}}\n",
        """field llm.prices.gpt4o-mini: this is the price of a model that is not asked, and `gpt-4o-mini` has none
  Did you mean `gpt-4o-mini`? Else add its price.""",
    ),
    "unknown backend": (
        BASE + "llm: {backend: openia}\n",
        """s.yaml:5:16, field llm.backend, value openia: expected 'lexical' or 'openai'
  Did you mean `openai`?""",
    ),
    "temperature": (
        BASE + "llm: {temperature: hot}\n",
        """s.yaml:5:20, field llm.temperature, value hot: expected a number
  Write a number, as in 0.5 or 1e-4.""",
    ),
    "name with slash": (
        BASE.replace("name: small", "name: a/b"),
        """s.yaml:1:7, field name, value a/b: expected a text that matches ^[A-Za-z0-9][A-Za-z0-9._-]*$
  Correct this value.""",
    ),
    "name missing": (
        BASE.replace("name: small\n", ""),
        """s.yaml:1:1, field name: the key `name` is required
  Add `name: ...`.""",
    ),
    "no data": (
        BASE.replace("data: {format: market, users: 3, items: 12, interests: 2, interactions: 4}\n", ""),
        """s.yaml:1:1, field data: the key `data` is required
  Add `data: ...`.""",
    ),
    "list top": (
        "- name: x\n",
        """s.yaml:1:1, value a list of 1: expected a mapping at the top
  Start with `key: value` lines.""",
    ),
    "empty": (
        "",
        """s.yaml: the file is empty
  Write at least one `key: value` line.""",
    ),
    "missing path": (
        BASE.replace(
            "{format: market, users: 3, items: 12, interests: 2, interactions: 4}", "{format: atomic, path: nowhere}"
        ),
        """nowhere: there is no such folder
  data.path names the folder of the .inter and .item files, relative to the working directory (HERE).""",
    ),
    "few items": (
        BASE.replace("items: 12", "items: 4"),
        """s.yaml:2:7, field data: 4 items do not suffice for 4 interactions of a user and a negative
  Correct this value.""",
    ),
    "prompt unknown": (
        BASE + "prompts: {chose: x.j2}\n",
        """field prompts.chose: there is no such prompt to replace
  Prompts: analyse.item, analyse.user, choose, item, rank, rank.titles, reask, reflect.item.right, reflect.item.told, reflect.item.wrong, reflect.user.right, reflect.user.told, reflect.user.wrong, shorter, taken, taken.none, user.""",
    ),
    "prompt missing file": (
        BASE + "prompts: {choose: x.j2}\n",
        """x.j2: prompt choose cannot be read: [Errno 2] No such file or directory: 'x.j2'
  Give a readable UTF-8 file.""",
    ),
    "extends missing": (
        "extends: base.yaml\n" + BASE,
        """s.yaml:1:10, field extends, value base.yaml: there is no file HERE/base.yaml
  The path is relative to the file that says `extends`.""",
    ),
    "variant unknown key": (
        BASE + "variants: {a: {method: {rouns: 1}}}\n",
        """s.yaml:5:25, field method.rouns: the key `rouns` is not known here
  Did you mean `rounds`?""",
    ),
    "variants list": (
        BASE + "variants: [a]\n",
        """s.yaml:5:11, field variants: `variants` maps names to changes
  Write variants: {name: {...}}.""",
    ),
    "second doc": (
        BASE + "---\nname: b\n",
        """s.yaml:5:1: a second document starts here
  Keep one document in the file.""",
    ),
    "anchor": (
        BASE.replace("{kind: agentcf}", "*m"),
        """s.yaml:3:9: no complete anchor &m stands before this
  Define it above.""",
    ),
    "seed float": (
        BASE + "seed: 1.5\n",
        """s.yaml:5:7, field seed, value 1.5: expected a whole number
  Write digits, as in 10 or 1e4.""",
    ),
    "on_error": (
        BASE + "engine: {on_error: retry}\n",
        """s.yaml:5:20, field engine.on_error, value retry: expected 'skip' or 'stop'
  Choose one of these.""",
    ),
    "over_limit": (
        BASE.replace("kind: agentcf", "kind: agentcf, over_limit: trim"),
        """s.yaml:3:37, field method.over_limit, value trim: expected 'keep', 'reask' or 'cut'
  Choose one of these.""",
    ),
}

WRONG |= {
    "optimize twice": (
        BASE.replace("rank: {}", "optimize: {}"),
        """s.yaml:1:1: a scenario re-enacts its interactions once, but there are several `optimize` stages
  Correct this value.""",
    ),
    "talks of another method": (
        BASE.replace("{rank: {}}", "{converse: {}}"),
        """s.yaml:1:1: the method `agentcf` does not play a stage `converse`
  The stages `converse`, `one_turn`, `chat`, `demonstrate` are those of the method `interec`, which plays no others.""",
    ),
    "another stage of the method with talks": (
        BASE.replace("agentcf", "interec").replace("{optimize: {}}", "{converse: {}}"),
        """s.yaml:1:1: the method `interec` does not play a stage `rank`
  The stages `converse`, `one_turn`, `chat`, `demonstrate` are those of the method `interec`, which plays no others.""",
    ),
    "days before a talk that has none": (
        BASE.replace("agentcf", "interec").replace("[{optimize: {}}, {rank: {}}]", "[{converse: {days: 2}}]"),
        """s.yaml:4:21, field stages[0].converse: there are no earlier days before a talk of the mode session
  Leave `days` out, or say `mode: long_context`.""",
    ),
    "one wrong entry in a list that must have one": (
        BASE.replace("agentcf", "interec").replace("[{optimize: {}}, {rank: {}}]", "[{one_turn: {tasks: [rank]}}]"),
        """s.yaml:4:30, field stages[0].one_turn.tasks[0], value rank: expected 'retrieval' or 'ranking'
  Did you mean `ranking`?""",
    ),
    "no entry in a list that must have one": (
        BASE.replace("agentcf", "interec").replace("[{optimize: {}}, {rank: {}}]", "[{one_turn: {tasks: []}}]"),
        """s.yaml:4:29, field stages[0].one_turn.tasks, value a list of 0: expected a list of at least 1
  Correct this value.""",
    ),
    "a ranker's name misspelt": (
        BASE.replace("kind: agentcf", "kind: interec, preference: itemknm"),
        """s.yaml:3:37, field method.preference, value itemknm: there is no such ranker; there are random, pop, bm25, seqsim, itemknn, bpr, sasrec
  Did you mean `itemknn`?""",
    ),
    "live ranking first": (
        BASE.replace("[{optimize: {}}, {rank: {}}]", "[{rank: {when: live}}, {optimize: {}}]"),
        """s.yaml:1:1: a ranking `when: live` stands among the interactions of an `optimize` stage before it
  Correct this value.""",
    ),
}

SETS = {
    "an assignment without a value": (
        "seed",
        """--set, entry seed: not an assignment to a field
  Write NAME=VALUE, as in llm.temperature=0 or stages[1].rank.repeats=3.""",
    ),
    "an assignment to an unknown section": (
        "methd.rounds=2",
        """--set, entry methd.rounds, field methd: the key `methd` is not known here
  Did you mean `method`?""",
    ),
    "an index that is not there": (
        "stages[7].rank.k=[1]",
        """--set, entry stages[7].rank.k: `stages` has no entry [7]: it is a list of 2
  An entry of a list is named by its place, the first one as `stages[0]`.""",
    ),
    "a list's entry named as a key": (
        "stages.1.rank.k=[1]",
        """--set, entry stages.1.rank.k: `stages` has no key `1`: it is a list of 2
  An entry of a list is named by its place, the first one as `stages[0]`.""",
    ),
    "a key inside a number": (
        "seed.x=1",
        """--set, entry seed.x, field seed, value a mapping with x: expected a whole number
  Write digits, as in 10 or 1e4.""",
    ),
    "a value of the wrong kind": (
        "data.users=few",
        """--set, entry data.users, field data.users, value few: expected a whole number
  Write digits, as in 10 or 1e4.""",
    ),
}


def message(text: str, sets: tuple[str, ...] = ()) -> str:
    """What is said of a scenario; HERE stands for the working directory."""
    Path("s.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(InputError) as raised:
        for scenario, _ in read_all("s.yaml", sets).values():
            Setup.of(scenario).check()
    return str(raised.value).replace(str(Path.cwd()), "HERE")


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_scenario_is_explained(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text, expected = WRONG[name]
    assert message(text) == expected


@pytest.mark.parametrize("name", SETS)
def test_a_wrong_entry_is_explained(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    entry, expected = SETS[name]
    assert message(BASE, (entry,)) == expected
