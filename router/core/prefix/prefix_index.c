#include "prefix_index.h"

#include <stdlib.h>
#include <string.h>

#if defined(__GNUC__) || defined(__clang__)
/* A macro, called where the data is needed: GCC takes a function that only prefetches for pure, and drops its calls. */
#define PREFETCH(address) __builtin_prefetch(address)
#define LOWEST_BIT(word) ((uint32_t)__builtin_ctzll(word))
#elif defined(_MSC_VER)
#include <intrin.h>
#define PREFETCH(address) ((void)(address))
static uint32_t LOWEST_BIT(uint64_t word)
{
    unsigned long bit;
    _BitScanForward64(&bit, word);
    return (uint32_t)bit;
}
#endif

#define SHARDS 256u       /* each grows on its own, so that no single growth stops the caller for long */
#define SHARD_CELLS 8u    /* to begin with */
#define BATCH 16u         /* memory accesses that are under way together */
#define MASK_WORDS (PREFIX_MAX_INSTANCES / 64)
#define HOLDERS 4095u     /* stands for the slot in records of kind "holders" */
#define LANE_BITS 12
#define LANES 4u
#define POOLED (1ull << 51)
#define NONE 0u           /* no record: index 0 is the list head of slot 0, which is never in the table */

typedef struct {
    uint64_t words[MASK_WORDS];
} Mask;

/* A list head (one per slot, at the slot's own index), a residency, the holders of a block, or free. */
typedef struct {
    uint64_t key;
    union {
        struct {
            uint64_t newer : 26;
            uint64_t older : 26;
            uint64_t slot : 12;
        } link;
        struct {
            uint64_t set : 52; /* up to four lanes of 12 bits, each a slot + 1; or POOLED and the index of a mask */
            uint64_t slot : 12; /* HOLDERS */
        } block;
        uint64_t next_free;
    } as;
} Record;

typedef struct {
    uint32_t hash;
    uint32_t record;
} Cell;

/* Linear probing, no tombstones, at most three quarters full. */
typedef struct {
    Cell *cells;
    uint32_t size;
    uint32_t used;
} Shard;

typedef struct {
    uint32_t capacity; /* 0: the slot is free */
    uint32_t count;
    bool exact;
} Slot;

typedef struct {
    uint32_t count;
    uint32_t next_free;
    Mask mask;
} PooledMask;

struct PrefixIndex {
    Shard shards[SHARDS];
    Slot slots[PREFIX_MAX_INSTANCES];
    uint32_t slot_count; /* highest taken slot + 1 */
    uint32_t exact_count;
    Record *records; /* reserved whole, so that records never move; pages are used only once they are written */
    uint32_t fresh;  /* records from here on were never used */
    uint32_t free_record;
    PooledMask *pool;
    uint32_t pool_size, pool_fresh, pool_free; /* pool_free: index + 1, 0 when there is none */
    uint32_t max_blocks;
    uint32_t entries, blocks;
    uint64_t evictions;
    size_t cell_bytes;
};

/* ---- keys ---- */

/* Spread hashes that are not random (ids of traces); a bijection, so that equal keys are equal hashes. */
static uint64_t key_of(Chain chain, size_t block)
{
    uint64_t x;
    memcpy(&x, chain.hashes + 8 * block, 8);
    x ^= x >> 32;
    x *= 0xd6e8feb86659fd93ull;
    x ^= x >> 32;
    x *= 0xd6e8feb86659fd93ull;
    return x ^ x >> 32;
}

/* Where (key, slot) belongs: the shard is in the highest byte, the cell's hash in the four below. */
static uint64_t place_of(uint64_t key, uint32_t slot)
{
    return (key ^ (slot + 1) * 0x9e3779b97f4a7c15ull) * 0xff51afd7ed558ccdull;
}

static uint32_t hash_in(uint64_t place)
{
    return (uint32_t)(place >> 24);
}

static Shard *shard_at(const PrefixIndex *index, uint64_t place)
{
    return (Shard *)&index->shards[place >> 56];
}

static uint32_t home_of(uint32_t hash, uint32_t size)
{
    return (uint32_t)((uint64_t)hash * size >> 32);
}

/* ---- the table: (key, slot) -> record ---- */

static uint32_t find_at(const PrefixIndex *index, uint64_t place, uint64_t key, uint32_t slot)
{
    const Shard *shard = shard_at(index, place);
    uint32_t hash = hash_in(place);
    for (uint32_t i = home_of(hash, shard->size); shard->cells[i].record != NONE;) {
        if (shard->cells[i].hash == hash) {
            const Record *record = &index->records[shard->cells[i].record];
            if (record->key == key && record->as.link.slot == slot)
                return shard->cells[i].record;
        }
        if (++i == shard->size)
            i = 0;
    }
    return NONE;
}

static uint32_t find(const PrefixIndex *index, uint64_t key, uint32_t slot)
{
    return find_at(index, place_of(key, slot), key, slot);
}

static void put_cell(Shard *shard, Cell cell)
{
    uint32_t i = home_of(cell.hash, shard->size);
    while (shard->cells[i].record != NONE)
        if (++i == shard->size)
            i = 0;
    shard->cells[i] = cell;
}

/* Make room for one more cell. */
static bool reserve_cell(PrefixIndex *index, Shard *shard)
{
    if (4 * ((uint64_t)shard->used + 1) <= 3 * (uint64_t)shard->size)
        return true;
    Shard grown = {NULL, shard->size + shard->size / 2, shard->used};
    grown.cells = calloc(grown.size, sizeof(Cell));
    if (!grown.cells)
        return false;
    for (uint32_t i = 0; i < shard->size; i++)
        if (shard->cells[i].record != NONE)
            put_cell(&grown, shard->cells[i]);
    index->cell_bytes += (size_t)(grown.size - shard->size) * sizeof(Cell);
    free(shard->cells);
    *shard = grown;
    return true;
}

/* Take a record out of the table, and close the gap so that every other one is still found. */
static void remove_cell(PrefixIndex *index, uint64_t place, uint32_t record)
{
    Shard *shard = shard_at(index, place);
    uint32_t gap = home_of(hash_in(place), shard->size);
    while (shard->cells[gap].record != record)
        if (++gap == shard->size)
            gap = 0;
    for (uint32_t i = gap;;) {
        if (++i == shard->size)
            i = 0;
        if (shard->cells[i].record == NONE)
            break;
        uint32_t home = home_of(shard->cells[i].hash, shard->size);
        bool home_is_past_gap = gap <= i ? gap < home && home <= i : gap < home || home <= i;
        if (home_is_past_gap)
            continue;
        shard->cells[gap] = shard->cells[i];
        gap = i;
    }
    shard->cells[gap].record = NONE;
    shard->used--;
}

/* Put a new record into the table; its cell was reserved before. */
static uint32_t new_record(PrefixIndex *index, uint64_t place, uint64_t key)
{
    uint32_t at = index->free_record;
    if (at != NONE)
        index->free_record = (uint32_t)index->records[at].as.next_free;
    else
        at = index->fresh++;
    index->records[at].key = key;
    Shard *shard = shard_at(index, place);
    put_cell(shard, (Cell){hash_in(place), at});
    shard->used++;
    return at;
}

static void free_record(PrefixIndex *index, uint64_t place, uint32_t at)
{
    remove_cell(index, place, at);
    index->records[at].as.next_free = index->free_record;
    index->free_record = at;
}

/* ---- sets of instances: four in place, more as a bit mask from a pool ---- */

static bool mask_has(const Mask *mask, uint32_t slot)
{
    return mask->words[slot / 64] >> slot % 64 & 1;
}

static void mask_add(Mask *mask, uint32_t slot)
{
    mask->words[slot / 64] |= 1ull << slot % 64;
}

static uint32_t lane(uint64_t set, uint32_t i)
{
    return (uint32_t)(set >> LANE_BITS * i) & ((1u << LANE_BITS) - 1);
}

static bool set_is_pooled(uint64_t set)
{
    return set & POOLED;
}

static bool set_has(const PrefixIndex *index, uint64_t set, uint32_t slot)
{
    if (set_is_pooled(set))
        return mask_has(&index->pool[set & ~POOLED].mask, slot);
    for (uint32_t i = 0; i < LANES; i++)
        if (lane(set, i) == slot + 1)
            return true;
    return false;
}

static uint32_t set_size(const PrefixIndex *index, uint64_t set)
{
    if (set_is_pooled(set))
        return index->pool[set & ~POOLED].count;
    uint32_t size = 0;
    while (size < LANES && lane(set, size))
        size++;
    return size;
}

static bool reserve_pooled(PrefixIndex *index)
{
    if (index->pool_free || index->pool_fresh < index->pool_size)
        return true;
    uint32_t size = index->pool_size + index->pool_size / 2 + 64;
    PooledMask *pool = realloc(index->pool, size * sizeof(PooledMask));
    if (!pool)
        return false;
    index->pool = pool;
    index->pool_size = size;
    return true;
}

/* Move a full set of lanes into the pool, where room was reserved before. */
static uint64_t set_pooled(PrefixIndex *index, uint64_t set)
{
    uint32_t at = index->pool_fresh;
    if (index->pool_free) {
        at = index->pool_free - 1;
        index->pool_free = index->pool[at].next_free;
    } else {
        index->pool_fresh++;
    }
    PooledMask *pooled = &index->pool[at];
    memset(pooled, 0, sizeof *pooled);
    for (uint32_t i = 0; i < LANES; i++)
        mask_add(&pooled->mask, lane(set, i) - 1);
    pooled->count = LANES;
    return POOLED | at;
}

/* Add a slot that is not in the set; in the pool, room was reserved before. */
static uint64_t set_with(PrefixIndex *index, uint64_t set, uint32_t slot)
{
    uint32_t size = set_size(index, set);
    if (size < LANES)
        return set | (uint64_t)(slot + 1) << LANE_BITS * size;
    if (size == LANES && !set_is_pooled(set))
        set = set_pooled(index, set);
    PooledMask *pooled = &index->pool[set & ~POOLED];
    mask_add(&pooled->mask, slot);
    pooled->count++;
    return set;
}

static uint64_t set_unpooled(PrefixIndex *index, uint32_t at, uint32_t words)
{
    PooledMask *pooled = &index->pool[at];
    uint64_t set = 0;
    uint32_t size = 0;
    for (uint32_t w = 0; w < words; w++)
        for (uint64_t rest = pooled->mask.words[w]; rest; rest &= rest - 1)
            set |= (uint64_t)(w * 64 + LOWEST_BIT(rest) + 1) << LANE_BITS * size++;
    pooled->next_free = index->pool_free;
    index->pool_free = at + 1;
    return set;
}

/* Take out a slot that is in the set. */
static uint64_t set_without(PrefixIndex *index, uint64_t set, uint32_t slot)
{
    if (set_is_pooled(set)) {
        PooledMask *pooled = &index->pool[set & ~POOLED];
        pooled->mask.words[slot / 64] &= ~(1ull << slot % 64);
        if (--pooled->count > LANES - 1)
            return set;
        return set_unpooled(index, (uint32_t)(set & ~POOLED), MASK_WORDS);
    }
    uint64_t left = 0;
    for (uint32_t i = 0, size = 0; i < LANES; i++)
        if (lane(set, i) && lane(set, i) != slot + 1)
            left |= (uint64_t)lane(set, i) << LANE_BITS * size++;
    return left;
}

/* ---- lists: most recently used first, a ring through the slot's head ---- */

static void unlink_record(PrefixIndex *index, uint32_t at)
{
    Record *records = index->records;
    uint32_t newer = (uint32_t)records[at].as.link.newer;
    uint32_t older = (uint32_t)records[at].as.link.older;
    records[newer].as.link.older = older;
    records[older].as.link.newer = newer;
}

static void link_behind(PrefixIndex *index, uint32_t newer, uint32_t at)
{
    Record *records = index->records;
    uint32_t older = (uint32_t)records[newer].as.link.older;
    records[at].as.link.newer = newer;
    records[at].as.link.older = older;
    records[newer].as.link.older = at;
    records[older].as.link.newer = at;
}

static void move_behind(PrefixIndex *index, uint32_t newer, uint32_t at)
{
    if (newer == at || index->records[newer].as.link.older == at)
        return;
    unlink_record(index, at);
    link_behind(index, newer, at);
}

/* ---- one block at one instance ---- */

static bool add_residency(PrefixIndex *index, uint64_t key, uint32_t slot, uint32_t *cursor)
{
    uint64_t place = place_of(key, slot), block_place = place_of(key, HOLDERS);
    if (!reserve_cell(index, shard_at(index, place)) || !reserve_cell(index, shard_at(index, block_place)) ||
        !reserve_pooled(index))
        return false;
    /* Two cells may fall into one shard: the quarter that stays empty has room for the second. */
    uint32_t at = new_record(index, place, key);
    index->records[at].as.link.slot = slot;
    link_behind(index, *cursor, at);
    *cursor = at;
    uint32_t block = find_at(index, block_place, key, HOLDERS);
    if (block == NONE) {
        block = new_record(index, block_place, key);
        index->records[block].as.block.slot = HOLDERS;
        index->records[block].as.block.set = 0;
        index->blocks++;
    }
    index->records[block].as.block.set = set_with(index, index->records[block].as.block.set, slot);
    index->slots[slot].count++;
    index->entries++;
    return true;
}

static void drop_residency(PrefixIndex *index, uint32_t at)
{
    uint64_t key = index->records[at].key;
    uint32_t slot = (uint32_t)index->records[at].as.link.slot;
    uint64_t block_place = place_of(key, HOLDERS);
    uint32_t block = find_at(index, block_place, key, HOLDERS);
    uint64_t left = set_without(index, index->records[block].as.block.set, slot);
    index->records[block].as.block.set = left;
    if (!left) {
        free_record(index, block_place, block);
        index->blocks--;
    }
    unlink_record(index, at);
    free_record(index, place_of(key, slot), at);
    index->slots[slot].count--;
    index->entries--;
}

/* ---- making room ---- */

/* Where a search begins. */
static const Cell *home_cell(const PrefixIndex *index, uint64_t place)
{
    const Shard *shard = shard_at(index, place);
    return &shard->cells[home_of(hash_in(place), shard->size)];
}

/* The record that a search most likely ends at; reads cells only. */
static const Record *likely_record(const PrefixIndex *index, uint64_t place)
{
    const Shard *shard = shard_at(index, place);
    uint32_t hash = hash_in(place), i = home_of(hash, shard->size);
    while (shard->cells[i].record != NONE && shard->cells[i].hash != hash)
        if (++i == shard->size)
            i = 0;
    return &index->records[shard->cells[i].record];
}

/* Drop the least recently used blocks of a slot, leaves before their parents. */
static void drop_oldest(PrefixIndex *index, uint32_t slot, uint32_t count)
{
    while (count) {
        uint32_t batch[BATCH], size = 0;
        uint32_t at = (uint32_t)index->records[slot].as.link.newer;
        for (; size < BATCH && size < count; size++, at = (uint32_t)index->records[at].as.link.newer) {
            batch[size] = at;
            PREFETCH(home_cell(index, place_of(index->records[at].key, slot)));
            PREFETCH(home_cell(index, place_of(index->records[at].key, HOLDERS)));
        }
        for (uint32_t i = 0; i < size; i++)
            PREFETCH(likely_record(index, place_of(index->records[batch[i]].key, HOLDERS)));
        for (uint32_t i = 0; i < size; i++)
            drop_residency(index, batch[i]);
        count -= size;
    }
}

static void evict(PrefixIndex *index, uint32_t slot, uint32_t count)
{
    index->evictions += count;
    drop_oldest(index, slot, count);
}

/* The slot with the most blocks to spare; the inserting one needs `kept` of its own. */
static uint32_t richest(const PrefixIndex *index, uint32_t inserting, uint32_t kept)
{
    uint32_t best = 0, most = 0;
    for (uint32_t slot = 0; slot < index->slot_count; slot++) {
        uint32_t spare = index->slots[slot].count - (slot == inserting ? kept : 0);
        if (spare > most) {
            most = spare;
            best = slot;
        }
    }
    return best;
}

/* Evict until `missing` blocks fit; the `kept` most recently used ones of the slot stay. */
static void make_room(PrefixIndex *index, uint32_t slot, uint32_t kept, uint32_t missing)
{
    const Slot *own = &index->slots[slot];
    if (own->count + missing > own->capacity)
        evict(index, slot, own->count + missing - own->capacity);
    while (index->entries + missing > index->max_blocks)
        evict(index, richest(index, slot, kept), 1);
}

/* ---- inserting ---- */

/* Move the leading blocks that are resident to the front, in order, and return how many there are. */
static size_t touch_resident(PrefixIndex *index, uint32_t slot, Chain chain, uint32_t *cursor)
{
    for (size_t from = 0; from < chain.blocks; from += BATCH) {
        size_t size = chain.blocks - from < BATCH ? chain.blocks - from : BATCH;
        uint64_t keys[BATCH], places[BATCH];
        for (size_t i = 0; i < size; i++) {
            keys[i] = key_of(chain, from + i);
            places[i] = place_of(keys[i], slot);
            PREFETCH(home_cell(index, places[i]));
        }
        for (size_t i = 0; i < size; i++)
            PREFETCH(likely_record(index, places[i]));
        for (size_t i = 0; i < size; i++) {
            uint32_t at = find_at(index, places[i], keys[i], slot);
            if (at == NONE)
                return from + i;
            move_behind(index, *cursor, at);
            *cursor = at;
        }
    }
    return chain.blocks;
}

static bool add_missing(PrefixIndex *index, uint32_t slot, Chain chain, size_t from, uint32_t *cursor)
{
    for (; from < chain.blocks; from += BATCH) {
        size_t size = chain.blocks - from < BATCH ? chain.blocks - from : BATCH;
        uint64_t keys[BATCH];
        for (size_t i = 0; i < size; i++) {
            keys[i] = key_of(chain, from + i);
            PREFETCH(home_cell(index, place_of(keys[i], slot)));
            PREFETCH(home_cell(index, place_of(keys[i], HOLDERS)));
        }
        for (size_t i = 0; i < size; i++) {
            uint32_t at = find(index, keys[i], slot);
            if (at != NONE) { /* only where residency is exact, or a chain repeats a block */
                move_behind(index, *cursor, at);
                *cursor = at;
            } else if (!add_residency(index, keys[i], slot, cursor)) {
                return false;
            }
        }
    }
    return true;
}

bool prefix_index_insert(PrefixIndex *index, uint32_t slot, Chain chain)
{
    uint32_t limit = index->slots[slot].capacity;
    if (limit > index->max_blocks)
        limit = index->max_blocks;
    if (chain.blocks > limit)
        chain.blocks = limit;
    uint32_t cursor = slot;
    size_t kept = touch_resident(index, slot, chain, &cursor);
    make_room(index, slot, (uint32_t)kept, (uint32_t)(chain.blocks - kept));
    return add_missing(index, slot, chain, kept, &cursor);
}

static void set_exact(PrefixIndex *index, uint32_t slot, bool exact)
{
    index->exact_count += (uint32_t)exact - (uint32_t)index->slots[slot].exact;
    index->slots[slot].exact = exact;
}

bool prefix_index_store(PrefixIndex *index, uint32_t slot, Chain chain)
{
    set_exact(index, slot, true);
    return prefix_index_insert(index, slot, chain);
}

void prefix_index_discard(PrefixIndex *index, uint32_t slot, Chain chain)
{
    set_exact(index, slot, true);
    for (size_t i = 0; i < chain.blocks; i++) {
        uint32_t at = find(index, key_of(chain, i), slot);
        if (at != NONE)
            drop_residency(index, at);
    }
}

/* ---- matching ---- */

/* Write those of `among` that hold the block into `within`; return whether there are any. */
static bool holders_within(const PrefixIndex *index, uint64_t key, const Mask *among, Mask *within)
{
    uint32_t words = (index->slot_count + 63) / 64;
    uint64_t any = 0;
    memset(within->words, 0, words * sizeof(uint64_t));
    uint32_t block = find(index, key, HOLDERS);
    if (block == NONE)
        return false;
    uint64_t set = index->records[block].as.block.set;
    if (set_is_pooled(set)) {
        const Mask *holders = &index->pool[set & ~POOLED].mask;
        for (uint32_t w = 0; w < words; w++)
            any |= within->words[w] = among->words[w] & holders->words[w];
        return any;
    }
    for (uint32_t i = 0; i < LANES && lane(set, i); i++)
        if (mask_has(among, lane(set, i) - 1)) {
            mask_add(within, lane(set, i) - 1);
            any = 1;
        }
    return any;
}

/* Take `gone` out of `mask`; return whether any is left. */
static bool mask_subtract(Mask *mask, const Mask *gone, uint32_t words)
{
    uint64_t any = 0;
    for (uint32_t w = 0; w < words; w++)
        any |= mask->words[w] &= ~gone->words[w];
    return any;
}

static void write_depth(const Mask *mask, uint32_t words, uint32_t depth, uint32_t *depths)
{
    for (uint32_t w = 0; w < words; w++)
        for (uint64_t rest = mask->words[w]; rest; rest &= rest - 1)
            depths[w * 64 + LOWEST_BIT(rest)] = depth;
}

/* Bisect: everyone in `among` holds low..high blocks, and residency is prefix-closed. Destroys `among`. */
static void match_closed(const PrefixIndex *index, Chain chain, size_t low, size_t high, Mask *among, uint32_t *depths)
{
    uint32_t words = (index->slot_count + 63) / 64;
    while (low < high) {
        size_t middle = high - (high - low) / 2;
        Mask within;
        if (holders_within(index, key_of(chain, middle - 1), among, &within)) {
            bool any_left = mask_subtract(among, &within, words);
            match_closed(index, chain, middle, high, &within, depths);
            if (!any_left)
                return;
        }
        high = middle - 1;
    }
    write_depth(among, words, (uint32_t)low, depths);
}

/* Walk: where residency is exact, the first missing block ends the match, whatever is resident behind it. */
static void match_exact(const PrefixIndex *index, Chain chain, Mask *alive, uint32_t *depths)
{
    uint32_t words = (index->slot_count + 63) / 64;
    for (size_t from = 0; from < chain.blocks; from += BATCH) {
        size_t size = chain.blocks - from < BATCH ? chain.blocks - from : BATCH;
        for (size_t i = 0; i < size; i++)
            PREFETCH(home_cell(index, place_of(key_of(chain, from + i), HOLDERS)));
        for (size_t i = 0; i < size; i++)
            PREFETCH(likely_record(index, place_of(key_of(chain, from + i), HOLDERS)));
        for (size_t i = 0; i < size; i++) {
            Mask within;
            bool any = holders_within(index, key_of(chain, from + i), alive, &within);
            mask_subtract(alive, &within, words);
            write_depth(alive, words, (uint32_t)(from + i), depths);
            *alive = within;
            if (!any)
                return;
        }
    }
    write_depth(alive, words, (uint32_t)chain.blocks, depths);
}

void prefix_index_match(const PrefixIndex *index, Chain chain, uint32_t *depths)
{
    memset(depths, 0, index->slot_count * sizeof(uint32_t));
    Mask closed = {{0}}, exact = {{0}}, within;
    for (uint32_t slot = 0; slot < index->slot_count; slot++)
        if (index->slots[slot].count)
            mask_add(index->slots[slot].exact ? &exact : &closed, slot);
    if (chain.blocks && holders_within(index, key_of(chain, 0), &closed, &within))
        match_closed(index, chain, 1, chain.blocks, &within, depths);
    if (index->exact_count)
        match_exact(index, chain, &exact, depths);
}

/* ---- instances ---- */

PrefixIndex *prefix_index_new(uint32_t max_blocks)
{
    PrefixIndex *index = calloc(1, sizeof *index);
    if (!index)
        return NULL;
    index->max_blocks = max_blocks;
    index->fresh = PREFIX_MAX_INSTANCES;
    index->free_record = NONE;
    index->records = calloc(PREFIX_MAX_INSTANCES + 2 * (size_t)max_blocks, sizeof(Record));
    bool complete = index->records != NULL;
    for (uint32_t i = 0; i < SHARDS && complete; i++) {
        index->shards[i].size = SHARD_CELLS;
        index->shards[i].cells = calloc(SHARD_CELLS, sizeof(Cell));
        complete = index->shards[i].cells != NULL;
    }
    index->cell_bytes = SHARDS * SHARD_CELLS * sizeof(Cell);
    if (!complete) {
        prefix_index_free(index);
        return NULL;
    }
    for (uint32_t slot = 0; slot < PREFIX_MAX_INSTANCES; slot++)
        index->records[slot].as.link.newer = index->records[slot].as.link.older = slot;
    return index;
}

void prefix_index_free(PrefixIndex *index)
{
    if (!index)
        return;
    for (uint32_t i = 0; i < SHARDS; i++)
        free(index->shards[i].cells);
    free(index->records);
    free(index->pool);
    free(index);
}

int prefix_index_add(PrefixIndex *index, uint32_t capacity_blocks)
{
    for (uint32_t slot = 0; slot < PREFIX_MAX_INSTANCES; slot++)
        if (!index->slots[slot].capacity) {
            index->slots[slot] = (Slot){capacity_blocks, 0, false};
            if (slot >= index->slot_count)
                index->slot_count = slot + 1;
            return (int)slot;
        }
    return -1;
}

bool prefix_index_has(const PrefixIndex *index, uint32_t slot)
{
    return slot < PREFIX_MAX_INSTANCES && index->slots[slot].capacity;
}

void prefix_index_clear(PrefixIndex *index, uint32_t slot)
{
    drop_oldest(index, slot, index->slots[slot].count);
    set_exact(index, slot, false);
}

void prefix_index_remove(PrefixIndex *index, uint32_t slot)
{
    prefix_index_clear(index, slot);
    index->slots[slot].capacity = 0;
    while (index->slot_count && !index->slots[index->slot_count - 1].capacity)
        index->slot_count--;
}

void prefix_index_set_capacity(PrefixIndex *index, uint32_t slot, uint32_t capacity_blocks)
{
    Slot *own = &index->slots[slot];
    own->capacity = capacity_blocks;
    if (own->count > capacity_blocks)
        evict(index, slot, own->count - capacity_blocks);
}

/* ---- gauges ---- */

uint32_t prefix_index_slots(const PrefixIndex *index)
{
    return index->slot_count;
}

uint32_t prefix_index_resident(const PrefixIndex *index, uint32_t slot)
{
    return index->slots[slot].count;
}

uint32_t prefix_index_blocks(const PrefixIndex *index)
{
    return index->blocks;
}

uint32_t prefix_index_entries(const PrefixIndex *index)
{
    return index->entries;
}

uint32_t prefix_index_capacity(const PrefixIndex *index)
{
    return index->max_blocks;
}

uint64_t prefix_index_evictions(const PrefixIndex *index)
{
    return index->evictions;
}

size_t prefix_index_memory_bytes(const PrefixIndex *index)
{
    return sizeof *index + index->cell_bytes + index->fresh * sizeof(Record) + index->pool_size * sizeof(PooledMask);
}

/* ---- integrity ---- */

static const char *list_fault(const PrefixIndex *index, uint32_t slot)
{
    uint32_t count = 0, newer = slot;
    for (uint32_t at = (uint32_t)index->records[slot].as.link.older; at != slot;
         newer = at, at = (uint32_t)index->records[at].as.link.older) {
        const Record *record = &index->records[at];
        if (record->as.link.newer != newer)
            return "a list's links disagree";
        if (record->as.link.slot != slot || find(index, record->key, slot) != at)
            return "a residency is not found under its block and slot";
        uint32_t block = find(index, record->key, HOLDERS);
        if (block == NONE || !set_has(index, index->records[block].as.block.set, slot))
            return "a block's set lacks an instance that holds it";
        if (++count > index->slots[slot].count)
            return "a list is longer than its count";
    }
    if (index->records[slot].as.link.newer != newer)
        return "a list's end is not where it began";
    if (count != index->slots[slot].count)
        return "a list is shorter than its count";
    if (count > index->slots[slot].capacity)
        return "an instance holds more than its capacity";
    return NULL;
}

static const char *shard_fault(const PrefixIndex *index, const Shard *shard, uint32_t *blocks, uint32_t *held)
{
    uint32_t used = 0;
    for (uint32_t i = 0; i < shard->size; i++) {
        uint32_t at = shard->cells[i].record;
        if (at == NONE)
            continue;
        used++;
        const Record *record = &index->records[at];
        uint32_t slot = (uint32_t)record->as.link.slot;
        if (find(index, record->key, slot) != at)
            return "a record is not found under its own key";
        if (slot != HOLDERS)
            continue;
        if (!record->as.block.set)
            return "a block without holders is kept";
        ++*blocks;
        *held += set_size(index, record->as.block.set);
    }
    if (used != shard->used)
        return "a shard's cells are miscounted";
    return NULL;
}

static uint32_t free_records(const PrefixIndex *index)
{
    uint32_t count = 0;
    for (uint32_t at = index->free_record; at != NONE && count <= index->fresh; count++)
        at = (uint32_t)index->records[at].as.next_free;
    return count;
}

const char *prefix_index_fault(const PrefixIndex *index)
{
    const char *fault = NULL;
    uint32_t entries = 0, blocks = 0, held = 0, exact = 0;
    size_t cells = 0;
    for (uint32_t slot = 0; slot < PREFIX_MAX_INSTANCES && !fault; slot++) {
        fault = list_fault(index, slot);
        entries += index->slots[slot].count;
        exact += index->slots[slot].exact;
    }
    for (uint32_t i = 0; i < SHARDS && !fault; i++) {
        fault = shard_fault(index, &index->shards[i], &blocks, &held);
        cells += index->shards[i].size;
    }
    if (fault)
        return fault;
    if (entries != index->entries || held != entries)
        return "the entries of lists, sets and the gauge disagree";
    if (blocks != index->blocks)
        return "the blocks are miscounted";
    if (entries > index->max_blocks)
        return "more entries than the cap are kept";
    if (exact != index->exact_count)
        return "the exact instances are miscounted";
    if (cells * sizeof(Cell) != index->cell_bytes)
        return "the memory of cells is miscounted";
    if (free_records(index) + entries + blocks != index->fresh - PREFIX_MAX_INSTANCES)
        return "records are lost";
    return NULL;
}
