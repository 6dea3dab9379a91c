"""The words of the invented catalogue: interests that run through albums, films, books and games. All made up.

Every style and every feature belongs to one interest and one domain, so that whoever names it names the interest.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

DOMAINS = ("album", "film", "book", "game")
"""The kinds of things that an invented market can sell, each a domain; a market uses the first so many."""

# Each interest: for each domain the kind that it stands before in the name of a style, and what is typical of it.
_WORDS = {
    "Harbour": (
        "Brass: warm trumpets, slow marches, fog horns, dockside choirs, valve solos, dusk tempo",
        "Noir: wet quays, weary smugglers, harbour fog, last ferries",
        "Mysteries: missing cargo, gruff pilots, tide tables, quayside inns",
        "Tycoon: crane loading, ship routes, customs deals, pier upgrades",
    ),
    "Glass": (
        "Techno: crisp sequencers, cold pulses, bell tones, four-on-the-floor, loops, strobe tempo",
        "Thriller: mirrored offices, surveillance, icy dialogue, lift scenes",
        "Futures: cities under domes, clean prose, uneasy robots, logic traps",
        "Puzzlers: light beams, prism locks, silent chambers, rewinds",
    ),
    "Orchard": (
        "Folk: plucked strings, harvest songs, close harmony, wooden flutes, ballads, porch tempo",
        "Drama: family farms, first love, late summers, village fetes",
        "Sagas: three generations, cider feuds, letters home, recipes",
        "Farming: crop seasons, beekeeping, market stalls, barn building",
    ),
    "Granite": (
        "Metal: down-tuned guitars, double bass drums, growls, epic suites, riffs, charging tempo",
        "Action: cliff chases, stunt climbs, one-liners, avalanches",
        "Fantasy: dwarven halls, oaths, runes, sieges",
        "Combat: heavy armour, boss fights, shield walls, combo moves",
    ),
    "Velvet": (
        "Soul: smooth vocals, organ chords, tender lyrics, backing choirs, slow grooves, late tempo",
        "Romance: ballrooms, longing glances, candlelight, second chances",
        "Romances: secret diaries, slow courtship, witty heroines, grand houses",
        "Dating: heart meters, gift giving, branching talk, confessions",
    ),
    "Desert": (
        "Blues: slide guitar, dusty rhythm, call and response, hand claps, laments, walking tempo",
        "Western: lone riders, standoffs, dry towns, saddle songs",
        "Travels: caravans, oasis nights, camel lore, star maps",
        "Survival: water hunting, sandstorms, scrap crafting, heat gauges",
    ),
    "Paper": (
        "Chamber: string quartet, quiet counterpoint, prepared piano, fugues, miniatures, rubato",
        "Animation: cut-out figures, handmade sets, gentle jokes, narrators",
        "Essays: footnotes, library walks, wordplay, marginal sketches",
        "Cards: deck building, folded boards, bluffing, dealt hands",
    ),
    "Neon": (
        "Pop: bright synths, big choruses, handclaps, radio hooks, key changes, dancing tempo",
        "Musical: dance numbers, spotlights, rooftop duets, glitter",
        "Celebrity: backstage gossip, tour buses, fame diaries, fan clubs",
        "Racing: drift corners, turbo boosts, night circuits, tuned cars",
    ),
    "Copper": (
        "Jazz: muted horns, brushed drums, long solos, blue notes, upright bass, swing tempo",
        "Caper: heist crews, safecracking, double crosses, getaway vans",
        "Detectives: private eyes, smoky clubs, red herrings, locked rooms",
        "Heists: stealth routes, lock picking, guard patrols, disguises",
    ),
    "Tide": (
        "Ambient: drifting pads, field recordings, long reverb, drones, no drums, still tempo",
        "Documentary: coral gardens, whale calls, patient camerawork, research boats",
        "Poetry: shorelines, free verse, moons, salt winds",
        "Diving: free exploring, sunken wrecks, oxygen tanks, fish logs",
    ),
    "Market": (
        "Ska: off-beat guitar, brisk horns, toasting, organ stabs, street stories, skipping tempo",
        "Comedy: mistaken parcels, loud aunts, bargaining, chase scenes",
        "Satire: small-town politics, con men, absurd laws, gossip columns",
        "Trading: price haggling, warehouse stock, auction bids, rival shops",
    ),
    "Lantern": (
        "Rap: dense rhymes, sampled strings, story verses, deep bass, scratches, head-nod tempo",
        "Horror: creaking stairs, old curses, candle searches, jump scares",
        "Ghosts: haunted mills, whispered names, winter tales, unreliable witnesses",
        "Dungeons: torch light, trapped chests, skeleton hordes, map drawing",
    ),
}


def _styles(interest: str, lines: tuple[str, ...]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    parts = (line.split(": ") for line in lines)
    return tuple((f"{interest} {kind}", tuple(features.split(", "))) for kind, features in parts)


STYLES: Mapping[str, tuple[tuple[str, tuple[str, ...]], ...]] = MappingProxyType(
    {interest: _styles(interest, lines) for interest, lines in _WORDS.items()}
)
"""For each interest, in each of ``DOMAINS``, the name of its style and the features that are typical of it."""
