"""The words of the invented catalogue: made-up styles of music, what they sound like, and titles that never repeat."""

from __future__ import annotations

STYLES: tuple[tuple[str, tuple[str, ...]], ...] = (
    (
        "Harbour Brass",
        ("warm trumpets", "slow marches", "fog horns", "dockside choirs", "valve solos", "dusk tempo"),
    ),
    ("Glass Techno", ("crisp sequencers", "cold pulses", "bell tones", "four-on-the-floor", "loops", "strobe tempo")),
    ("Orchard Folk", ("plucked strings", "harvest songs", "close harmony", "wooden flutes", "ballads", "porch tempo")),
    ("Granite Metal", ("down-tuned guitars", "double bass drums", "growls", "epic suites", "riffs", "charging tempo")),
    ("Velvet Soul", ("smooth vocals", "organ chords", "tender lyrics", "backing choirs", "slow grooves", "late tempo")),
    ("Desert Blues", ("slide guitar", "dusty rhythm", "call and response", "hand claps", "laments", "walking tempo")),
    ("Paper Chamber", ("string quartet", "quiet counterpoint", "prepared piano", "fugues", "miniatures", "rubato")),
    ("Neon Pop", ("bright synths", "big choruses", "handclaps", "radio hooks", "key changes", "dancing tempo")),
    ("Copper Jazz", ("muted horns", "brushed drums", "long solos", "blue notes", "upright bass", "swing tempo")),
    ("Tide Ambient", ("drifting pads", "field recordings", "long reverb", "drones", "no drums", "still tempo")),
    ("Market Ska", ("off-beat guitar", "brisk horns", "toasting", "organ stabs", "street stories", "skipping tempo")),
    ("Lantern Rap", ("dense rhymes", "sampled strings", "story verses", "deep bass", "scratches", "head-nod tempo")),
)
"""Styles with what is characteristic of each; an invented market uses the first so many."""

_FIRST = (
    "Amber", "Borrowed", "Crooked", "Distant", "Early", "Fallen", "Gentle", "Hollow", "Idle", "Jagged", "Kindred",
    "Lonely", "Midnight", "Northern", "Open", "Painted", "Quiet", "Restless", "Silver", "Tangled", "Unwritten",
    "Vanishing", "Wandering", "Yellow", "Zigzag",
)  # fmt: skip
_SECOND = (
    "Almanac", "Bridge", "Carousel", "Doorway", "Engine", "Ferry", "Garden", "Hotel", "Island", "Journey", "Kingdom",
    "Letter", "Mirror", "Needle", "Ocean", "Parade", "Quarry", "River", "Signal", "Theatre", "Umbrella", "Valley",
    "Window", "Yard", "Zenith", "Anchor", "Compass", "Feather", "Lighthouse",
)  # fmt: skip


def title(number: int) -> str:
    """The title of this number (from 0): two words, all pairs before any comes back as ``Vol. 2``, ``Vol. 3`` ..."""
    volume, pair = divmod(number, len(_FIRST) * len(_SECOND))
    # The lengths 25 and 29 have no common factor, so the two remainders together are different for every pair.
    words = f"{_FIRST[pair % len(_FIRST)]} {_SECOND[pair % len(_SECOND)]}"
    return words if volume == 0 else f"{words}, Vol. {volume + 1}"
