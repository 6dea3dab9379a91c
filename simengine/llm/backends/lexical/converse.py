"""How the lexical backend recommends in a talk: by plans after examples; ``seeker`` is its user.

The planner takes the tools of the first plan that it is shown, whatever that is for, and fills in what it finds in the
user's words: tags among the values that the columns are shown with, years, prices, numbers of how often an item was
taken, titles that the user has enjoyed, and what people say of their own accord (``wishes``). Shown no plan, it
filters and fetches. It takes the critic's advice: it leaves out what it is told to, and asks for less where nothing was
left. The critic rejects where a tool failed, unless what was asked for is not there at all, and where an item is
recommended again.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from simengine.llm.backends.lexical import asked, one_turn, wishes
from simengine.llm.backends.lexical.shown import Shown
from simengine.llm.backends.lexical.wishes import Wishes
from simengine.llm.replies import decision, message

HAD, WANT, ALSO = "I have enjoyed: ", "I am looking for something with: ", "It is also something with: "
OFFER, OMIT = "You may like: ", "Leave out: "
USER, _OTHER = "User: ", "Recommender: "
TITLES_HAD = re.compile(rf"{HAD}(.+?)\.(?= {WANT}|\Z)")
_OFFER = re.compile(rf"{OFFER}(.+?)\.(?= Does one|\Z)")
_OMIT = re.compile(rf"{OMIT}(.+?)\.\Z")
TAKEN = re.compile(r"\btaken (\d+) to (\d+) times")
YEAR = re.compile(r"\bcame out in (\d{4})\b")
_PRICE = re.compile(r"\bcosts (\d+(?:\.\d+)?)")
_TAGS = re.compile(r"\Atags \(tags\).*?; near your request: (.+?)(?:; others: |\Z)")
_ANY, _QUOTE = "Ask for less", "'"
_LINE = re.compile(r"^\d+\. (.+)$", re.MULTILINE)
_ROW = re.compile(r"^title: (.+?), (?=\w+: )", re.MULTILINE)
_BARS = re.compile(r"(?<=: )\||\|(?=, |$)", re.MULTILINE)  # round the tags of a row
_THANKS = re.compile(r"(?i)\bthank|\bthx\b|\bcheers\b|\bbye\b")
_NOT_THERE = re.compile(r"; error (?:not_found|ambiguous):")


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
    request = shown.text("request")
    outright = one_turn.steps(request, liked) or asked.steps(request, wanted, liked)
    if outright:
        return outright
    wish = _wishes(shown)
    if wish.question:
        return [_use("look_up", sql=wish.question)]
    if wish.idle or not (wanted or liked or wish.asks or "?" in request):
        return []
    steps = [_use("look_up", sql=wish.look_up)] if wish.look_up else []
    for tool in _shape(shown, wish, bool(unwanted)):
        if tool == "hard_filter":
            steps += _filters(shown, wanted, wish.doubts)
        elif tool == "soft_filter" and (wish.similar or liked):
            steps.append(_use(tool, titles=list(wish.similar) or liked))
        elif tool == "rank" and wish.similar:
            steps.append(_use(tool, by="similarity", unwanted=unwanted))
        elif tool == "rank":
            steps.append(_use(tool, by="preference" if liked else "popularity", liked=liked, unwanted=unwanted))
    return [*steps, _use("fetch", n=5)]


def _filters(shown: Shown, wanted: Sequence[str], doubts: Sequence[str]) -> list[dict[str, Any]]:
    """One filter by all conditions; those that may well fail, as on columns that are not there, in their own."""
    columns = shown.texts("columns")
    told = [it for it in wanted if wishes.known(it, columns)]
    joined = (" OR " if _less(shown) and not _apart(shown) else " AND ").join(told)
    others = [*(it for it in wanted if it not in told), *doubts]
    return [_use("hard_filter", sql=f"SELECT id FROM candidates WHERE {it}") for it in (joined, *others) if it]


def _use(tool: str, **given: Any) -> dict[str, Any]:
    return {"tool": tool, "input": given}


def _wishes(shown: Shown) -> Wishes:
    """What the user has said of his own accord; what he likes, and does not, in all of the talk."""
    everything, now = (
        wishes.read(lines, shown.texts("columns"), shown.noun) for lines in (_all_lines(shown), _lines(shown))
    )
    return now._replace(liked=everything.liked, unwanted=everything.unwanted)


def _lines(shown: Shown) -> list[str]:
    """What the user has said in the talk, without the sentences that list titles.

    Where all of it is too much, it is what he says now, if that alone tells of his own accord what he wants.
    """
    return _all_lines(shown)[-1:] if _apart(shown) else _all_lines(shown)


def _all_lines(shown: Shown) -> list[str]:
    return [asked.without_titles(TITLES_HAD.sub("", line)) for line in _told(shown).splitlines()] or [""]


def _less(shown: Shown) -> bool:
    """Whether nothing was left by all that the user has told, in this attempt's advice or in an earlier one."""
    advice, tracker = shown.text("advice"), shown.texts("tracker")
    return advice.startswith(_ANY) or (bool(advice) and any("; error no_match" in line for line in tracker))


def _apart(shown: Shown) -> bool:
    """Whether to go by the last message alone."""
    request = _all_lines(shown)[-1:]
    return _less(shown) and wishes.read(request, shown.texts("columns"), shown.noun).narrow


def _shape(shown: Shown, wish: Wishes, unwanted: bool) -> list[str]:
    """The tools to use: those of the first plan that is shown, and a ranking where something is to be left out.

    A user who wants what is similar to something has his own.
    """
    if wish.similar:
        return ["hard_filter", "soft_filter", "rank"]
    tools = ["hard_filter"]
    for example in shown.texts("demonstrations")[:1]:
        found = [step["tool"] for step in json.loads(example.rpartition("\nPlan: ")[2])["steps"]]
        tools = list(dict.fromkeys(("hard_filter", *found)))
    return [*tools, "rank"] if (unwanted or wish.liked) and "rank" not in tools else tools


def _conditions(shown: Shown) -> list[str]:
    """What the user has told as conditions in SQL."""
    lines = _lines(shown)
    tags = [
        f"tags {'NOT ' * wishes.is_refused(tag, lines)}LIKE '%|{tag.replace(_QUOTE, 2 * _QUOTE)}|%'"
        for tag in _tags(shown)
    ]
    years = [f"release_date LIKE '{year}%'" for year in YEAR.findall(_told(shown))]
    prices = [f"price = {price}" for price in _PRICE.findall(_told(shown))]
    taken = [f"visits BETWEEN {low} AND {high}" for low, high in TAKEN.findall(_told(shown))]
    return list(dict.fromkeys([*tags, *years, *prices, *taken, *_wishes(shown).conditions]))


def _tags(shown: Shown) -> list[str]:
    """The tags near the request that the user has named whole, titles aside."""
    told = "\n".join(wishes.since_anew(_lines(shown))).casefold()
    found = (_TAGS.match(column) for column in shown.texts("columns"))
    near = [tag for match in found if match for tag in match[1].split(", ")]
    return [tag for tag in near if tag.casefold() in told]


def _taken(shown: Shown) -> list[str]:
    return [f"taken {low} to {high} times" for low, high in TAKEN.findall(_told(shown))]


def _told(shown: Shown) -> str:
    """All that the user has said in the talk."""
    own = [line.removeprefix(USER) for line in shown.texts("dialogue") if line.startswith(USER)]
    return "\n".join([*own, one_turn.without_list(shown.text("request"))])


def _liked(shown: Shown) -> list[str]:
    """Titles that the user has enjoyed; a tag that he likes is none."""
    listed, tags = list(_listed(TITLES_HAD, _told(shown).splitlines())), {tag.casefold() for tag in _tags(shown)}
    return [*listed, *(it for it in _wishes(shown).liked if it not in listed and it.casefold() not in tags)]


def _unwanted(shown: Shown) -> list[str]:
    """What the critic says is to be left out, and what the user says that he does not like."""
    omitted, tags = list(_listed(_OMIT, [shown.text("advice")])), {tag.casefold() for tag in _tags(shown)}
    return [*omitted, *(it for it in _wishes(shown).unwanted if it not in omitted and it.casefold() not in tags)]


def _reply(shown: Shown) -> str:
    """What was fetched, else what was looked up; and what could not be gone by."""
    titles = [title for text in shown.texts("results") for title in _LINE.findall(text)]
    facts = [
        _ROW.sub(r"\1: ", _BARS.sub("", text).replace("|", ", "))
        for text in shown.texts("results")
        if not _LINE.search(text)
    ]
    problems = "; ".join(text.partition(": ")[2] for text in shown.texts("problems"))
    if titles:
        apart = f"I could not go by all that you said ({problems}). " if problems else ""
        said = f"{apart}{OFFER}{'; '.join(titles)}. Does one of them suit you?"
    elif problems:
        said = f"I could not find anything like that ({problems}). What else can you tell me of it?"
    elif facts:
        said = f"This is what I know: {'; '.join(' / '.join(text.splitlines()) for text in facts)}."
    else:
        opening = "You are welcome" if _THANKS.search(shown.text("request")) else "Good to see you"
        said = f"{opening}. Tell me what you have enjoyed, or what you are looking for."
    return message.write(said, json=shown.json)


def _critic(shown: Shown) -> str:
    before = set(_listed(_OFFER, (it for it in shown.texts("dialogue") if it.startswith(_OTHER))))
    again = [title for title in _listed(_OFFER, [shown.text("reply")]) if title in before]
    failed = [it for it in shown.texts("tracker") if "; error " in it and not _NOT_THERE.search(it)]
    if any("error no_match" in line for line in failed):
        return decision.write(False, f"{_ANY}: no {shown.noun} meets all of it.", json=shown.json)
    if failed:
        return decision.write(False, "A tool has failed: use it otherwise.", json=shown.json)
    if again:
        return decision.write(False, f"{OMIT}{'; '.join(again)}.", json=shown.json)
    return decision.write(True, "The reply meets what was said.", json=shown.json)


def _distil(shown: Shown) -> str:
    """He likes what he says that he has enjoyed, and does not want what he was offered in vain."""
    lines = shown.texts("dialogue")
    like = list(_listed(TITLES_HAD, [line for line in lines if line.startswith(USER)]))
    offered = _listed(_OFFER, [line for line in lines if line.startswith(_OTHER)])
    return json.dumps({"like": like, "dislike": [it for it in offered if it not in like]}, ensure_ascii=False)


def _listed(pattern: re.Pattern[str], texts: Iterable[str]) -> Iterator[str]:
    """The entries of the lists that a pattern finds in some texts, each once."""
    found = [entry.strip() for text in texts for match in pattern.finditer(text) for entry in match[1].split(";")]
    yield from dict.fromkeys(filter(None, found))


ANSWERS: Mapping[str, Callable[[Shown], str]] = {
    "converse.plan": _plan,
    "converse.step": _step,
    "converse.reply": _reply,
    "converse.critic": _critic,
    "converse.distil": _distil,
}
"""The tasks of a recommender."""
