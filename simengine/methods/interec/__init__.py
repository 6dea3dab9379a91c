"""InteRecAgent: a conversational recommender with tools, and the users who talk to it (arXiv 2308.16505).

Item table, fenced SQL, tools, candidate bus and typed plans ask no model and know no event. What a model wrote comes in
as text or plain values, is checked, and is never run as code; whatever is wrong with it ends in a tracker record with a
code (``faults``). ``agent`` and ``exchange`` are the recommender at work, ``seeker`` is the user.
"""
