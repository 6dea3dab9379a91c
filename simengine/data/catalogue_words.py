"""The words of the invented catalogue: interests that run through albums, films, books and games. All made up.

Every style and every feature belongs to one interest and one domain, so that whoever names it names the interest. An
interest has no word in common between two domains: that they belong together can be learned from what users take, and
not from how items are called.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

DOMAINS = ("album", "film", "book", "game")
"""The kinds of things that an invented market can sell, each a domain; a market uses the first so many."""

# Each interest: for each domain the name of its style there, and what is typical of it.
_WORDS = {
    "Harbour": (
        "Harbour Brass: warm trumpets, slow marches, fog horns, dockside choirs, valve solos, dusk tempo",
        "Rainy Noir: wet cobbles, weary smugglers, weak lamplight, last ferries",
        "Wharf Mysteries: missing cargo, gruff pilots, tide tables, quayside inns",
        "Port Tycoon: crane loading, ship routes, customs deals, pier upgrades",
    ),
    "Glass": (
        "Glass Techno: crisp sequencers, cold pulses, bell tones, four-on-the-floor, loops, strobe tempo",
        "Mirror Thriller: mirrored offices, surveillance, icy dialogue, lift scenes",
        "Clockwork Futures: cities under domes, clean prose, uneasy robots, logic traps",
        "Prism Puzzlers: light beams, prism locks, silent chambers, rewinds",
    ),
    "Orchard": (
        "Orchard Folk: plucked strings, harvest songs, close harmony, wooden flutes, ballads, porch tempo",
        "Rural Drama: family quarrels, first love, late summers, village fetes",
        "Lineage Sagas: three generations, cider feuds, letters home, recipes",
        "Greenfield Farming: crop seasons, beekeeping, market stalls, barn building",
    ),
    "Granite": (
        "Granite Metal: down-tuned guitars, double bass drums, growls, epic suites, riffs, charging tempo",
        "Summit Action: cliff chases, stunt climbs, one-liners, avalanches",
        "Stonehold Fantasy: dwarven halls, oaths, runes, sieges",
        "Vanguard Combat: heavy armour, boss fights, shield walls, combo moves",
    ),
    "Velvet": (
        "Velvet Soul: smooth vocals, organ chords, tender lyrics, backing choirs, slow grooves, late tempo",
        "Ballroom Romance: ballrooms, longing glances, candlelight, second chances",
        "Parlour Novels: secret diaries, patient courtship, witty heroines, grand houses",
        "Sweetheart Dating: heart meters, gift giving, branching talk, confessions",
    ),
    "Desert": (
        "Desert Blues: slide guitar, dusty rhythm, call and response, hand claps, laments, walking tempo",
        "Frontier Western: lone riders, standoffs, dry towns, saddle songs",
        "Nomad Travels: caravans, oasis nights, camel lore, star maps",
        "Dune Survival: water hunting, sandstorms, scrap crafting, heat gauges",
    ),
    "Paper": (
        "Paper Chamber: string quartet, quiet counterpoint, prepared piano, fugues, miniatures, rubato",
        "Puppet Animation: cut-out figures, handmade sets, gentle jokes, narrators",
        "Pencil Essays: footnotes, library walks, wordplay, marginal sketches",
        "Tabletop Cards: deck building, folded boards, bluffing, dealt hands",
    ),
    "Neon": (
        "Neon Pop: bright synths, big choruses, handclaps, radio hooks, key changes, dancing tempo",
        "Showtime Musical: dance numbers, spotlights, rooftop duets, glitter",
        "Stardom Lives: backstage gossip, tour buses, fame diaries, fan clubs",
        "Nitro Racing: drift corners, turbo boosts, night circuits, tuned cars",
    ),
    "Copper": (
        "Copper Jazz: muted horns, brushed drums, long solos, blue notes, upright bass, swing tempo",
        "Sly Caper: charming crooks, safecracking, double crosses, getaway vans",
        "Gumshoe Detectives: private eyes, smoky clubs, red herrings, locked rooms",
        "Shadow Heists: stealth routes, vault drilling, guard patrols, disguises",
    ),
    "Tide": (
        "Tide Ambient: drifting pads, field recordings, long reverb, drones, no drums, still tempo",
        "Reef Documentary: coral gardens, whale calls, patient camerawork, research boats",
        "Seaside Poetry: shorelines, blank verse, moons, salt winds",
        "Deepwater Diving: free exploring, sunken wrecks, oxygen tanks, fish logs",
    ),
    "Market": (
        "Market Ska: off-beat guitar, brisk horns, toasting, organ stabs, street stories, skipping tempo",
        "Muddle Comedy: mistaken parcels, loud aunts, bargaining, chase scenes",
        "Parish Satire: small-town politics, con men, absurd laws, gossip columns",
        "Bazaar Trading: price haggling, warehouse stock, auction bids, rival shops",
    ),
    "Lantern": (
        "Lantern Rap: dense rhymes, sampled strings, story verses, deep bass, scratches, head-nod tempo",
        "Attic Horror: creaking stairs, old curses, candle searches, jump scares",
        "Phantom Tales: haunted mills, whispered names, winter tales, unreliable witnesses",
        "Crypt Dungeons: torch light, trapped chests, skeleton hordes, map drawing",
    ),
}


def _style(line: str) -> tuple[str, tuple[str, ...]]:
    name, features = line.split(": ")
    return name, tuple(features.split(", "))


STYLES: Mapping[str, tuple[tuple[str, tuple[str, ...]], ...]] = MappingProxyType(
    {interest: tuple(map(_style, lines)) for interest, lines in _WORDS.items()}
)
"""For each interest, in each of ``DOMAINS``, the name of its style and the features that are typical of it."""
