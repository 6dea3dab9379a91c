"""How the lexical backend talks: a user who tells what he wants bit by bit, and a recommender who plans by examples.

The user says first what he has had and one thing that he looks for, then one more in each turn. The planner takes the
tools of the first plan that it is shown, whatever that is for, and fills in what it finds in the user's words: tags
among the values that the columns are shown with, years, numbers of how often an item was taken, titles that the user
has enjoyed. Shown no plan, it filters and fetches. It takes the critic's advice: it leaves out what it is told to, and
asks for less where nothing was left. The critic rejects where a tool failed, and where an item is recommended again.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from simengine.llm.backends.lexical_shown import Shown
from simengine.llm.replies import decision, talk

HAD, WANT, ALSO = "I have enjoyed: ", "I am looking for something with: ", "It is also something with: "
OFFER, OMIT = "You may like: ", "Leave out: "
OLDEST = 3
"""How many of the things that he has had last a user names."""

_USER, _OTHER = "User: ", "Recommender: "
_HAD = re.compile(rf"{HAD}(.+?)\.(?= {WANT}|\Z)")
_OFFER = re.compile(rf"{OFFER}(.+?)\.(?= Does one|\Z)")
_OMIT = re.compile(rf"{OMIT}(.+?)\.\Z")
_TAKEN = re.compile(r"\btaken (\d+) to (\d+) times")
_YEAR = re.compile(r"\bcame out in (\d{4})\b")
_TAGS = re.compile(r"\Atags \(tags\).*?; near your request: (.+?)(?:; others: |\Z)")
_ANY = "Ask for less"
_LINE = re.compile(r"^\d+\. (.+)$", re.MULTILINE)


def _user(shown: Shown) -> str:
    """What he wants, one condition a turn; when all is told he says once that it is none of these, then goodbye."""
    own = [line for line in shown.texts("dialogue") if line.startswith(_USER)]
    left = [it for it in shown.texts("conditions") if not any(it in line for line in own)]
    if not own:
        had = shown.texts("history")[-OLDEST:]
        parts = [f"{HAD}{'; '.join(had)}."] if had else []
        parts += [f"{WANT}{left[0]}."] if left else []
        return talk.write(" ".join(parts) or "What do you recommend?", False, json=shown.json)
    if left:
        return talk.write(f"None of these, thank you. {ALSO}{left[0]}.", False, json=shown.json)
    if len(own) <= len(shown.texts("conditions")):
        return talk.write("None of these, thank you. What else is there?", False, json=shown.json)
    return talk.write("It is not among them. Goodbye!", True, json=shown.json)


def _plan(shown: Shown) -> str:
    return _written(shown, _steps(shown))


def _step(shown: Shown) -> str:
    """The step of the plan that comes next, by how many lines the tracker has."""
    done = len(shown.texts("tracker"))
    return _written(shown, _steps(shown)[done : done + 1])


def _written(shown: Shown, steps: Sequence[Mapping[str, Any]]) -> str:
    profile = {"like": _liked(shown), "dislike": _unwanted(shown), "expect": [*_tags(shown), *_taken(shown)]}
    thought = "I go by what the user has told." if steps else "Nothing is asked for."
    return json.dumps({"thought": thought, "profile": profile, "steps": list(steps)}, ensure_ascii=False)


def _steps(shown: Shown) -> list[dict[str, Any]]:
    wanted, liked, unwanted = _conditions(shown), _liked(shown), _unwanted(shown)
    if not wanted and not liked and "?" not in shown.text("request"):
        return []
    steps: list[dict[str, Any]] = []
    for tool in _shape(shown, bool(unwanted)):
        if tool == "hard_filter" and wanted:
            either = " OR " if shown.text("advice").startswith(_ANY) else " AND "
            sql = f"SELECT id FROM candidates WHERE {either.join(wanted)}"
            steps.append({"tool": tool, "input": {"sql": sql}})
        elif tool == "soft_filter" and liked:
            steps.append({"tool": tool, "input": {"titles": liked}})
        elif tool == "rank":
            by = "preference" if liked else "popularity"
            steps.append({"tool": tool, "input": {"by": by, "liked": liked, "unwanted": unwanted}})
    return [*steps, {"tool": "fetch", "input": {"n": 5}}]


def _shape(shown: Shown, unwanted: bool) -> list[str]:
    """The tools to use: those of the first plan that is shown, and a ranking where something is to be left out."""
    tools = ["hard_filter"]
    for example in shown.texts("demonstrations")[:1]:
        found = [step["tool"] for step in json.loads(example.partition("Plan: ")[2])["steps"]]
        tools = list(dict.fromkeys(("hard_filter", *found)))
    return [*tools, "rank"] if unwanted and "rank" not in tools else tools


def _conditions(shown: Shown) -> list[str]:
    """What the user has told as conditions in SQL."""
    quoted = [tag.replace("'", "''") for tag in _tags(shown)]
    tags = [f"tags LIKE '%|{tag}|%'" for tag in quoted]
    years = [f"release_date LIKE '{year}%'" for year in _YEAR.findall(_told(shown))]
    return [*tags, *years, *(f"visits BETWEEN {low} AND {high}" for low, high in _TAKEN.findall(_told(shown)))]


def _tags(shown: Shown) -> list[str]:
    """The tags near the request that the user has named whole, titles aside."""
    told = "\n".join(_HAD.sub("", line) for line in _told(shown).splitlines()).casefold()
    found = (_TAGS.match(column) for column in shown.texts("columns"))
    near = [tag for match in found if match for tag in match[1].split(", ")]
    return [tag for tag in near if tag.casefold() in told]


def _taken(shown: Shown) -> list[str]:
    return [f"taken {low} to {high} times" for low, high in _TAKEN.findall(_told(shown))]


def _told(shown: Shown) -> str:
    """All that the user has said in the talk."""
    own = [line.removeprefix(_USER) for line in shown.texts("dialogue") if line.startswith(_USER)]
    return "\n".join([*own, shown.text("request")])


def _liked(shown: Shown) -> list[str]:
    return list(_listed(_HAD, _told(shown).splitlines()))


def _unwanted(shown: Shown) -> list[str]:
    """What the critic says is to be left out."""
    return list(_listed(_OMIT, [shown.text("advice")]))


def _reply(shown: Shown) -> str:
    titles = [title for text in shown.texts("results") for title in _LINE.findall(text)]
    if titles:
        return f"Message: {OFFER}{'; '.join(titles)}. Does one of them suit you?"
    if shown.texts("problems"):
        return "Message: I could not find anything like that. What else can you tell me of it?"
    return "Message: You are welcome. Tell me what you have enjoyed, or what you are looking for."


def _critic(shown: Shown) -> str:
    before = set(_listed(_OFFER, (it for it in shown.texts("dialogue") if it.startswith(_OTHER))))
    again = [title for title in _listed(_OFFER, [shown.text("reply")]) if title in before]
    failed = [line for line in shown.texts("tracker") if "; error " in line]
    if any("error no_match" in line for line in failed):
        return decision.write(False, f"{_ANY}: no {shown.noun} meets all of it.", json=shown.json)
    if failed:
        return decision.write(False, "A tool has failed: use it otherwise.", json=shown.json)
    if again:
        return decision.write(False, f"{OMIT}{'; '.join(again)}.", json=shown.json)
    return decision.write(True, "The reply meets what was said.", json=shown.json)


def _listed(pattern: re.Pattern[str], texts: Iterable[str]) -> Iterator[str]:
    """The entries of the lists that a pattern finds in some texts, each once."""
    found = [entry.strip() for text in texts for match in pattern.finditer(text) for entry in match[1].split(";")]
    yield from dict.fromkeys(filter(None, found))


ANSWERS: Mapping[str, Callable[[Shown], str]] = {
    "converse.user": _user,
    "converse.plan": _plan,
    "converse.step": _step,
    "converse.reply": _reply,
    "converse.critic": _critic,
}
"""The tasks of a conversation."""
