"""Studies of what trained agents do with one another, each in a file, by the name that scenarios use.

A study can be taken out by deleting its file, its templates, its line here and its line among the stages of a scenario.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import files

from simengine.methods.studies.advertising import Advertising
from simengine.methods.studies.chat import Chat
from simengine.methods.studies.cold_start import ColdStart
from simengine.methods.studies.converse import Converse
from simengine.methods.studies.demonstrate import Demonstrate
from simengine.methods.studies.discussion import Discussion
from simengine.methods.studies.one_turn import OneTurn
from simengine.methods.studies.probe import Probe
from simengine.methods.studies.reviews import Reviews
from simengine.methods.study import StudyKind

_PROMPTS = files("simengine.methods") / "prompts"

STUDIES: Mapping[str, StudyKind] = {
    "cold_start": StudyKind(ColdStart, _PROMPTS / "cold_start"),
    "advertising": StudyKind(Advertising, _PROMPTS / "advertising"),
    "probe": StudyKind(Probe, _PROMPTS / "probe"),
    "reviews": StudyKind(Reviews, _PROMPTS / "opinions"),
    "discussion": StudyKind(Discussion, _PROMPTS / "opinions"),
    "converse": StudyKind(Converse, _PROMPTS / "interec"),
    "chat": StudyKind(Chat, _PROMPTS / "interec"),
    "demonstrate": StudyKind(Demonstrate, _PROMPTS / "interec"),
    "one_turn": StudyKind(OneTurn, _PROMPTS / "one_turn"),
}
