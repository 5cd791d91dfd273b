"""An engine's prefix cache: KV blocks by chain hash, pinned while in use, evicted least recently used first.

Behaves like vLLM's block pool (``vllm/v1/core/block_pool.py``): a request that ends gives its blocks back deepest
first, so the tail of a prompt is evicted before its head, and a block never outlives the blocks before it. Because of
that, runs of blocks with the same history can be kept as one node of a radix tree; the cost of a request is the
number of nodes on its path, not the number of its blocks.

Blocks are packed chain hashes, 8 bytes each. A block is held once, however many requests compute it.
"""

from collections import OrderedDict

import msgspec

from router.sim.errors import EngineFault

BLOCK_BYTES = 8


class StoredBlocks(msgspec.Struct, frozen=True):
    """Blocks that entered the cache: a run of consecutive ones, after ``parent`` (None at the start of a prompt)."""

    request_id: str
    start_block: int
    parent: bytes | None
    blocks: bytes


class RemovedBlocks(msgspec.Struct, frozen=True):
    """Blocks that were evicted: the end of a run, packed."""

    blocks: bytes


class ClearedBlocks(msgspec.Struct, frozen=True):
    """The whole cache was emptied."""


KvEvent = StoredBlocks | RemovedBlocks | ClearedBlocks
"""What happened to a cache; a list of them is in order, since a block may come, go and come again within one step."""


class Node:
    """A run of blocks with the same history; ``pins`` counts the requests that use it."""

    __slots__ = ("children", "parent", "pins", "run")

    def __init__(self, parent: "Node | None", run: bytes) -> None:
        self.parent = parent
        self.run = run
        self.children: dict[bytes, Node] = {}
        self.pins = 0

    @property
    def blocks(self) -> int:
        """Number of blocks in the run."""
        return len(self.run) // BLOCK_BYTES


class Match(msgspec.Struct, frozen=True, gc=False):
    """The longest cached prefix of a chain.

    ``path`` are its nodes from the root's child on, the last one perhaps only in part; ``unpinned`` blocks of it
    would leave the evictable ones if it were used.
    """

    path: list[Node]
    blocks: int
    unpinned: int


class BlockCache:
    """A pool of ``capacity`` blocks: cached ones (in the tree), and private ones that are only counted."""

    def __init__(self, capacity: int, *, record_events: bool = False) -> None:
        self.capacity = capacity
        self.root = Node(None, b"")
        self.cached = 0
        self.pinned = 0
        self.private = 0
        self._evictable: OrderedDict[Node, None] = OrderedDict()
        self._events: list[KvEvent] | None = [] if record_events else None

    @property
    def available(self) -> int:
        """Blocks that can be allocated: free ones and evictable ones."""
        return self.capacity - self.pinned - self.private

    def match(self, chain: bytes, limit: int) -> Match:
        """Find the longest cached prefix of at most ``limit`` blocks; nothing is changed."""
        node, start, unpinned = self.root, 0, 0
        path: list[Node] = []
        limit = min(limit, len(chain) // BLOCK_BYTES)
        while start < limit:
            child = node.children.get(chain[start * BLOCK_BYTES : (start + 1) * BLOCK_BYTES])
            if child is None:
                break
            common = _common_blocks(child.run, chain, start, limit)
            path.append(child)
            start += common
            if child.pins == 0:
                unpinned += common
            if common < child.blocks:
                break
            node = child
        return Match(path, start, unpinned)

    def pin(self, match: Match) -> Node:
        """Use a match that was found since the last change; returns its deepest node, to be released once."""
        if not match.path:
            return self.root
        surplus = sum(node.blocks for node in match.path) - match.blocks
        for node in match.path[:-1]:
            self._pin(node)
        last = match.path[-1]
        if surplus:
            last = self._split(last, last.blocks - surplus)
        self._pin(last)
        return last

    def extend(self, node: Node, chain: bytes, start: int, stop: int, request_id: str) -> Node:
        """Pin blocks ``start..stop`` of a chain below ``node``, adding those that are missing; return the deepest.

        Room must have been made with :meth:`make_room` before.
        """
        while start < stop:
            key = chain[start * BLOCK_BYTES : (start + 1) * BLOCK_BYTES]
            child = node.children.get(key)
            if child is None:
                return self._add(node, key, chain[start * BLOCK_BYTES : stop * BLOCK_BYTES], start, request_id)
            common = _common_blocks(child.run, chain, start, stop)
            if common < child.blocks:
                child = self._split(child, common)
            self._pin(child)
            node = child
            start += common
        return node

    def release(self, node: Node) -> None:
        """Give back one use of a node and of everything before it, deepest first."""
        while node.parent is not None:
            node.pins -= 1
            if node.pins == 0:
                self.pinned -= node.blocks
                self._evictable[node] = None
            elif node.pins < 0:
                raise EngineFault("blocks were released twice")
            node = node.parent

    def begin_with(self, chain: bytes) -> int:
        """Hold a prefix that nobody uses, if there is room without evicting anything; return the blocks held of it."""
        blocks = len(chain) // BLOCK_BYTES
        match = self.match(chain, blocks)
        if blocks - match.blocks > self.capacity - self.cached - self.private:
            return match.blocks
        self.release(self.extend(self.pin(match), chain, match.blocks, blocks, "held"))
        return blocks

    def make_room(self, blocks: int) -> None:
        """Evict until ``blocks`` more can be held.

        :raises EngineFault: when more are asked for than :attr:`available`.
        """
        missing = blocks - (self.capacity - self.cached - self.private)
        while missing > 0:
            if not self._evictable:
                raise EngineFault(f"{missing} more KV blocks were allocated than there are")
            missing -= self._evict_tail(next(iter(self._evictable)), missing)

    def take_private(self, blocks: int) -> None:
        """Allocate blocks that nobody else can use."""
        self.make_room(blocks)
        self.private += blocks

    def clear(self) -> bool:
        """Forget every block, unless one is in use: then nothing changes and the answer is False."""
        if self.pinned or self.private:
            return False
        self.root.children.clear()
        self._evictable.clear()
        self.cached = 0
        if self._events is not None:
            self._events.append(ClearedBlocks())
        return True

    def take_events(self) -> list[KvEvent]:
        """Return what happened since the last call, in order; empty unless events are recorded."""
        if self._events is None:
            return []
        events, self._events = self._events, []
        return events

    def check_integrity(self) -> None:
        """Compare every counter with a recount of the tree.

        :raises EngineFault: on the first difference.
        """
        cached = pinned = 0
        stack = list(self.root.children.values())
        while stack:
            node = stack.pop()
            cached += node.blocks
            pinned += node.blocks if node.pins else 0
            if (node.pins == 0) != (node in self._evictable):
                raise EngineFault("an unpinned node is not evictable, or a pinned one is")
            if sum(child.pins for child in node.children.values()) > node.pins:
                raise EngineFault("a node is pinned less often than the nodes after it")
            stack.extend(node.children.values())
        if (cached, pinned) != (self.cached, self.pinned):
            raise EngineFault(f"cached, pinned are {self.cached}, {self.pinned}, but the tree has {cached}, {pinned}")
        if cached + self.private > self.capacity:
            raise EngineFault(f"{cached} + {self.private} blocks are held, but there are {self.capacity}")

    def _add(self, parent: Node, key: bytes, run: bytes, start: int, request_id: str) -> Node:
        node = Node(parent, run)
        node.pins = 1
        parent.children[key] = node
        self.cached += node.blocks
        self.pinned += node.blocks
        if self._events is not None:
            before = parent.run[-BLOCK_BYTES:] or None
            self._events.append(StoredBlocks(request_id, start, before, run))
        return node

    def _pin(self, node: Node) -> None:
        if node.pins == 0:
            self.pinned += node.blocks
            self._evictable.pop(node, None)
        node.pins += 1

    def _split(self, node: Node, blocks: int) -> Node:
        """Cut a node in two and return the front, which the caller must pin; the tail keeps its place in the queue."""
        parent = node.parent
        if parent is None:
            raise EngineFault("the root cannot be split")
        cut = blocks * BLOCK_BYTES
        front = Node(parent, node.run[:cut])
        front.pins = node.pins
        parent.children[front.run[:BLOCK_BYTES]] = front
        node.run = node.run[cut:]
        node.parent = front
        front.children[node.run[:BLOCK_BYTES]] = node
        return front

    def _evict_tail(self, node: Node, wanted: int) -> int:
        """Evict up to ``wanted`` blocks from the end of a node and return how many."""
        evicted = min(wanted, node.blocks)
        keep = len(node.run) - evicted * BLOCK_BYTES
        if self._events is not None:
            self._events.append(RemovedBlocks(node.run[keep:]))
        self.cached -= evicted
        if keep:
            node.run = node.run[:keep]
        else:
            del self._evictable[node]
            if node.parent is not None:
                del node.parent.children[node.run[:BLOCK_BYTES]]
        return evicted


def _common_blocks(run: bytes, chain: bytes, start: int, stop: int) -> int:
    """Count the leading blocks of ``run`` that equal ``chain[start:stop]``."""
    low, high = 0, min(len(run) // BLOCK_BYTES, stop - start)
    offset = start * BLOCK_BYTES
    if run[: high * BLOCK_BYTES] == chain[offset : offset + high * BLOCK_BYTES]:
        return high
    while high - low > 1:
        middle = (low + high) // 2
        if (
            run[low * BLOCK_BYTES : middle * BLOCK_BYTES]
            == (chain[offset + low * BLOCK_BYTES : offset + middle * BLOCK_BYTES])
        ):
            low = middle
        else:
            high = middle
    return low
