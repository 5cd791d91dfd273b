"""Filler text: words of three letters and a space, the same for the same seed.

Every word is one token of the simulated tokenizer (four bytes, see :mod:`router.engine.tokens`), about one token of a
real one, and needs no escaping in JSON. The simulated engine answers with it, the replayer asks with it.
"""

import hashlib

_WORDS = (
    "the and for are but not you all can had her was one our out day get has him his how man new now old see two way "
    "who boy did its let put say she too use dad mom cat dog sun sky sea air ice oil tea cup pen box bag bed car bus "
    "van map key toy fun joy war law art age end era eye ear arm leg hip lip toe rib gut fat fit fix fly fox fur gas "
    "gem gun guy hat hay hen hit hop hot hub hug ink inn ion ivy jam jar jaw jet job jog jug kid kin kit lab lap "
    "lid lie lot low mad mat may mix mob mud mug nap net nod nor nut oak odd off opt orb ore owl own pad pan paw pay "
    "pea pet pie pig pin pit pod pop pot pro pub pup rag ram ran rap rat raw ray red rid rim rip rob rod rot row rub "
    "rug run rye sad sap sat saw set sew shy sin sip sir sit six ski sob son sow spa spy sum tab tag tan tap tar tax "
    "ten tie tin tip ton top tow try tub tug urn vet via vow wag wax web wed wet why wig win wit woe wok won woo wow "
    "yak yam yen yes yet zap zen zip zoo ace act add ago aid aim ale ant ape apt arc ash ask ate awe axe bad ban bar"
)
VOCABULARY = tuple(f" {word}".encode() for word in _WORDS.split())
"""The words, four bytes each."""


def filler(seed: bytes, count: int) -> bytes:
    """Return ``count`` words (four bytes each) that depend on nothing but ``seed``."""
    return b"".join([VOCABULARY[byte % len(VOCABULARY)] for byte in hashlib.shake_128(seed).digest(count)])
