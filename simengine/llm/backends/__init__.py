"""The backends: what answers a request at the bottom of the layers. Each implements one method, ``complete``."""
