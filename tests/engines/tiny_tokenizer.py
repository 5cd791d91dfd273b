"""The vocabulary of the tiny models: every byte, a few English words built up letter by letter, three marks."""

SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
WORDS = (
    "the a an of to in that it is on for with as at by from this be are or and not have has was we you he she they "
    "router engine token cache block prefix prompt request answer message system user model queue prefill decode "
    "system reads writes holds waits sends first last longest shortest one two three all every each which when where"
)
SPACE = "Ġ"
"""How byte-level BPE spells a space."""


class TinyTokenizer:
    """``tokens`` by id, the marks first; ``merges`` in the order in which they are tried."""

    def __init__(self) -> None:
        self.merges = _merges()
        self.tokens = [*SPECIAL, *_byte_letters(), *("".join(merge) for merge in self.merges)]


def _merges() -> list[tuple[str, str]]:
    """Build every word up from its first letter; words that begin alike share their beginnings."""
    merges: dict[tuple[str, str], None] = {}
    for word in WORDS.split():
        letters = SPACE + word
        for end in range(1, len(letters)):
            merges[letters[:end], letters[end]] = None
    return list(merges)


def _byte_letters() -> list[str]:
    """Return the letter that stands for each byte, as GPT-2 spells them."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = iter(range(256, 512))
    return [chr(byte) if byte in printable else chr(next(others)) for byte in range(256)]
