"""From a YAML file to a run and back: reading scenarios, building what they say, running, resuming and replaying it."""

from simengine.scenario.run import Finished, Replayed, replay, resume, run
from simengine.scenario.schema import Scenario, read
from simengine.scenario.setup import Setup

__all__ = ["Finished", "Replayed", "Scenario", "Setup", "read", "replay", "resume", "run"]
