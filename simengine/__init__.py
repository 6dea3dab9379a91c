"""simengine re-enacts recommender-system interactions with language-model agents: run, replay, measure."""
