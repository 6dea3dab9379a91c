"""What agents are: their names, the messages they exchange, and the bipartite graph that they stand on."""

from simengine.world.agents import ident, item, kind, user
from simengine.world.graph import Edge, Graph
from simengine.world.messages import Message

__all__ = ["Edge", "Graph", "Message", "ident", "item", "kind", "user"]
