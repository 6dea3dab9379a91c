"""From a YAML file to a run and back: reading scenarios, building what they say, running, resuming and replaying it."""

from simengine.scenario.forking import fork
from simengine.scenario.opened import Run, Table
from simengine.scenario.replaying import Replayed, replay
from simengine.scenario.report import Report
from simengine.scenario.running import Finished, resume, run
from simengine.scenario.schema import Scenario, ScenarioFile, read, read_all
from simengine.scenario.setup import Setup
from simengine.scenario.variants import ManyReport, has_variants, resume_many, run_many

__all__ = [
    "Finished",
    "ManyReport",
    "Replayed",
    "Report",
    "Run",
    "Scenario",
    "ScenarioFile",
    "Setup",
    "Table",
    "fork",
    "has_variants",
    "read",
    "read_all",
    "replay",
    "resume",
    "resume_many",
    "run",
    "run_many",
]
