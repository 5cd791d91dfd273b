class NativePrefixIndex:
    """Which leading blocks of a prompt every instance is expected to hold.

    One shared table maps a block's chain hash to the set of instances that hold it. Per instance, blocks are kept in
    least-recently-used order with parents never older than their children, so that eviction takes leaves first and
    residency stays prefix-closed. ``max_blocks`` bounds the blocks summed over all instances: when it is reached, the
    instance with the most blocks to spare gives up its least recently used one.

    Every method raises IndexError for a slot without an instance and ValueError for a chain that is not whole hashes.
    """

    def __init__(self, max_blocks: int = ...) -> None: ...
    @property
    def blocks(self) -> int:
        """Distinct blocks that are resident anywhere."""
    @property
    def entries(self) -> int:
        """Blocks summed over instances: what ``capacity`` bounds."""
    @property
    def capacity(self) -> int:
        """The most entries that are ever kept."""
    @property
    def memory_bytes(self) -> int:
        """Memory in bytes. It follows the most entries that were ever kept at once, and does not shrink."""
    @property
    def evictions(self) -> int:
        """Entries that had to make room, since the beginning."""
    def add_instance(self, capacity_blocks: int) -> int:
        """Give a new instance the smallest free slot.

        :raises ValueError: when 1024 instances are there already.
        """
    def remove_instance(self, slot: int) -> None:
        """Forget an instance and free its slot."""
    def clear(self, slot: int) -> None:
        """Forget every block of an instance."""
    def set_capacity(self, slot: int, capacity_blocks: int) -> None:
        """Change an instance's capacity; what is too much is evicted at once."""
    def insert(self, slot: int, chain: bytes) -> None:
        """Expect a chain at an instance: touch what is there, add the rest, evict the least recently used leaves.

        Of a chain longer than the capacity the first blocks are kept.
        """
    def match(self, chain: bytes) -> list[int]:
        """Return, by slot, how many leading blocks of the chain each instance holds (0 for free slots).

        Hashes of a chain stand for all that comes before them, so no block is in it twice.
        """
    def resident(self, slot: int) -> int:
        """Return how many blocks an instance holds."""
    def store(self, slot: int, hashes: bytes) -> None:
        """Take in an engine's own word that it stored blocks, parents first.

        From now on, and until :meth:`clear`, the slot's residency is exact: a block may be there without its parent,
        and a match ends at the first block that is missing.
        """
    def discard(self, slot: int, hashes: bytes) -> None:
        """Take in an engine's own word that it removed blocks; what is not resident is passed over."""
    def check_integrity(self) -> None:
        """Compare everything that is kept twice.

        :raises router.core.errors.PrefixIndexFault: naming the first contradiction.
        """

def hash_chain(seed: bytes, key: bytes, text: bytes | memoryview, block_bytes: int, max_blocks: int, /) -> bytes:
    """Hash with SipHash-1-3: the hash of a block is read from the state after the key and the text up to its end."""

def common_blocks(first: bytes, second: bytes, /) -> int:
    """Return how many leading hashes two chains share."""

def hash_tokens(seed: bytes, parent: int, tokens: bytes | memoryview, block_bytes: int, /) -> bytes:
    """Hash with SipHash-1-3: each block's hash is of its parent's and its bytes; what is no whole block is left."""
