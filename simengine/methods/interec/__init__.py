"""InteRecAgent's workshop: the item table, fenced SQL over it, tools, the candidate bus, and typed plans to use them.

Nothing here asks a model or knows an event. What a model wrote comes in as text or plain values, is checked, and is
never run as code; whatever is wrong with it ends in a tracker record with a code (``faults``).
"""
