#include "prefix_index.h"

#include <stdlib.h>
#include <string.h>

#include "instance_set.h"
#include "record_table.h"

#define BATCH 16u /* memory accesses that are under way together */

typedef struct {
    uint32_t capacity; /* 0: the slot is free */
    uint32_t count;
    bool exact;
} Slot;

struct PrefixIndex {
    RecordTable table;
    MaskPool pool;
    Slot slots[PREFIX_MAX_INSTANCES];
    uint32_t slot_count; /* highest taken slot + 1 */
    uint32_t exact_count;
    uint32_t max_blocks;
    uint32_t entries, blocks;
    uint64_t evictions;
};

/* ---- lists: most recently used first, a ring through the slot's head ---- */

static void unlink_record(PrefixIndex *index, uint32_t at)
{
    Record *records = index->table.records;
    uint32_t newer = (uint32_t)records[at].as.link.newer;
    uint32_t older = (uint32_t)records[at].as.link.older;
    records[newer].as.link.older = older;
    records[older].as.link.newer = newer;
}

static void link_behind(PrefixIndex *index, uint32_t newer, uint32_t at)
{
    Record *records = index->table.records;
    uint32_t older = (uint32_t)records[newer].as.link.older;
    records[at].as.link.newer = newer;
    records[at].as.link.older = older;
    records[newer].as.link.older = at;
    records[older].as.link.newer = at;
}

static void move_behind(PrefixIndex *index, uint32_t newer, uint32_t at)
{
    if (newer == at || index->table.records[newer].as.link.older == at)
        return;
    unlink_record(index, at);
    link_behind(index, newer, at);
}

/* Move first..last, which stand one behind the other, as they are. */
static void move_run_behind(PrefixIndex *index, uint32_t newer, uint32_t first, uint32_t last)
{
    Record *records = index->table.records;
    if (newer == first || records[newer].as.link.older == first)
        return;
    uint32_t before = (uint32_t)records[first].as.link.newer;
    uint32_t behind = (uint32_t)records[last].as.link.older;
    records[before].as.link.older = behind;
    records[behind].as.link.newer = before;
    uint32_t older = (uint32_t)records[newer].as.link.older;
    records[newer].as.link.older = first;
    records[first].as.link.newer = newer;
    records[last].as.link.older = older;
    records[older].as.link.newer = last;
}

/* ---- one block at one instance ---- */

static bool add_residency(PrefixIndex *index, uint64_t key, uint32_t slot, uint32_t *cursor)
{
    uint64_t place = place_of(key, slot), block_place = place_of(key, HOLDERS);
    RecordTable *table = &index->table;
    /* Both cells may fall into one shard: the quarter that stays empty has room for the second. */
    if (!reserve_cell(table, shard_at(table, place)) || !reserve_cell(table, shard_at(table, block_place)) ||
        !reserve_pooled(&index->pool))
        return false;
    uint32_t at = new_record(&index->table, place, key);
    index->table.records[at].as.link.slot = slot;
    link_behind(index, *cursor, at);
    *cursor = at;
    uint32_t block = find_at(&index->table, block_place, key, HOLDERS);
    if (block == NONE) {
        block = new_record(&index->table, block_place, key);
        index->table.records[block].as.block.slot = HOLDERS;
        index->table.records[block].as.block.set = 0;
        index->blocks++;
    }
    index->table.records[block].as.block.set = set_with(&index->pool, index->table.records[block].as.block.set, slot);
    index->slots[slot].count++;
    index->entries++;
    return true;
}

static void drop_residency(PrefixIndex *index, uint32_t at)
{
    uint64_t key = index->table.records[at].key;
    uint32_t slot = (uint32_t)index->table.records[at].as.link.slot;
    uint64_t block_place = place_of(key, HOLDERS);
    uint32_t block = find_at(&index->table, block_place, key, HOLDERS);
    uint64_t left = set_without(&index->pool, index->table.records[block].as.block.set, slot);
    index->table.records[block].as.block.set = left;
    if (!left) {
        free_record(&index->table, block_place, block);
        index->blocks--;
    }
    unlink_record(index, at);
    free_record(&index->table, place_of(key, slot), at);
    index->slots[slot].count--;
    index->entries--;
}

/* ---- making room ---- */

/* Drop the least recently used blocks of a slot, leaves before their parents. */
static void drop_oldest(PrefixIndex *index, uint32_t slot, uint32_t count)
{
    while (count) {
        uint32_t batch[BATCH], size = 0;
        uint32_t at = (uint32_t)index->table.records[slot].as.link.newer;
        for (; size < BATCH && size < count; size++, at = (uint32_t)index->table.records[at].as.link.newer) {
            batch[size] = at;
            PREFETCH(home_cell(&index->table, place_of(index->table.records[at].key, slot)));
            PREFETCH(home_cell(&index->table, place_of(index->table.records[at].key, HOLDERS)));
        }
        for (uint32_t i = 0; i < size; i++)
            PREFETCH(likely_record(&index->table, place_of(index->table.records[batch[i]].key, HOLDERS)));
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
        uint32_t count = index->slots[slot].count, needed = slot == inserting ? kept : 0;
        uint32_t spare = count > needed ? count - needed : 0;
        if (spare > most) {
            most = spare;
            best = slot;
        }
    }
    return best;
}

static bool has_room(const PrefixIndex *index, uint32_t slot, uint32_t missing)
{
    const Slot *own = &index->slots[slot];
    return own->count + missing <= own->capacity && index->entries + missing <= index->max_blocks;
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

/* Move the leading blocks that are resident to the front, in order, and return how many there are. Blocks that were
   touched together stand one behind the other in the list: only the first of them is looked up in the table. */
static size_t touch_resident(PrefixIndex *index, uint32_t slot, Chain chain, uint32_t *cursor)
{
    const Record *records = index->table.records;
    size_t touched = 0;
    while (touched < chain.blocks) {
        uint32_t first = find(&index->table, key_of(chain, touched), slot), last = first;
        if (first == NONE)
            break;
        for (touched++; touched < chain.blocks; touched++) {
            uint32_t next = (uint32_t)records[last].as.link.older;
            /* A chain that repeats a block comes back to where it was. */
            if (next == slot || next == *cursor || records[next].key != key_of(chain, touched))
                break;
            last = next;
        }
        move_run_behind(index, *cursor, first, last);
        *cursor = last;
    }
    return touched;
}

/* Where residency is exact, blocks may be resident behind one that is missing: keep them from being evicted for it.
   Moves them to the front, and returns how many there are from `from` on. */
static size_t touch_scattered(PrefixIndex *index, uint32_t slot, Chain chain, size_t from, uint32_t cursor)
{
    size_t resident = 0;
    for (; from < chain.blocks; from++) {
        uint32_t at = find(&index->table, key_of(chain, from), slot);
        if (at == NONE)
            continue;
        move_behind(index, cursor, at);
        cursor = at;
        resident++;
    }
    return resident;
}

static bool add_missing(PrefixIndex *index, uint32_t slot, Chain chain, size_t from, uint32_t *cursor)
{
    for (; from < chain.blocks; from += BATCH) {
        size_t size = chain.blocks - from < BATCH ? chain.blocks - from : BATCH;
        uint64_t keys[BATCH];
        for (size_t i = 0; i < size; i++) {
            keys[i] = key_of(chain, from + i);
            PREFETCH(home_cell(&index->table, place_of(keys[i], slot)));
            PREFETCH(home_cell(&index->table, place_of(keys[i], HOLDERS)));
        }
        for (size_t i = 0; i < size; i++) {
            uint32_t at = find(&index->table, keys[i], slot);
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
    size_t scattered = 0;
    if (index->slots[slot].exact && !has_room(index, slot, (uint32_t)(chain.blocks - kept)))
        scattered = touch_scattered(index, slot, chain, kept, cursor);
    make_room(index, slot, (uint32_t)(kept + scattered), (uint32_t)(chain.blocks - kept - scattered));
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
        uint32_t at = find(&index->table, key_of(chain, i), slot);
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
    uint32_t block = find(&index->table, key, HOLDERS);
    if (block == NONE)
        return false;
    uint64_t set = index->table.records[block].as.block.set;
    if (set_is_pooled(set)) {
        const Mask *holders = &index->pool.masks[set & ~POOLED].mask;
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
            depths[w * 64 + lowest_bit(rest)] = depth;
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
            PREFETCH(home_cell(&index->table, place_of(key_of(chain, from + i), HOLDERS)));
        for (size_t i = 0; i < size; i++)
            PREFETCH(likely_record(&index->table, place_of(key_of(chain, from + i), HOLDERS)));
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
    if (!table_init(&index->table, 2 * (size_t)max_blocks)) {
        prefix_index_free(index);
        return NULL;
    }
    for (uint32_t slot = 0; slot < PREFIX_MAX_INSTANCES; slot++)
        index->table.records[slot].as.link.newer = index->table.records[slot].as.link.older = slot;
    return index;
}

void prefix_index_free(PrefixIndex *index)
{
    if (!index)
        return;
    table_free(&index->table);
    free(index->pool.masks);
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
    return sizeof *index + index->table.cell_bytes + index->table.fresh * sizeof(Record) +
           index->pool.size * sizeof(PooledMask);
}

/* ---- integrity ---- */

static const char *list_fault(const PrefixIndex *index, uint32_t slot)
{
    uint32_t count = 0, newer = slot;
    for (uint32_t at = (uint32_t)index->table.records[slot].as.link.older; at != slot;
         newer = at, at = (uint32_t)index->table.records[at].as.link.older) {
        const Record *record = &index->table.records[at];
        if (record->as.link.newer != newer)
            return "a list's links disagree";
        if (record->as.link.slot != slot || find(&index->table, record->key, slot) != at)
            return "a residency is not found under its block and slot";
        uint32_t block = find(&index->table, record->key, HOLDERS);
        if (block == NONE || !set_has(&index->pool, index->table.records[block].as.block.set, slot))
            return "a block's set lacks an instance that holds it";
        if (++count > index->slots[slot].count)
            return "a list is longer than its count";
    }
    if (index->table.records[slot].as.link.newer != newer)
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
        const Record *record = &index->table.records[at];
        uint32_t slot = (uint32_t)record->as.link.slot;
        if (find(&index->table, record->key, slot) != at)
            return "a record is not found under its own key";
        if (slot != HOLDERS)
            continue;
        if (!record->as.block.set)
            return "a block without holders is kept";
        ++*blocks;
        *held += set_size(&index->pool, record->as.block.set);
    }
    if (used != shard->used)
        return "a shard's cells are miscounted";
    return NULL;
}

static uint32_t free_records(const PrefixIndex *index)
{
    uint32_t count = 0;
    for (uint32_t at = index->table.free; at != NONE && count <= index->table.fresh; count++)
        at = (uint32_t)index->table.records[at].as.next_free;
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
        fault = shard_fault(index, &index->table.shards[i], &blocks, &held);
        cells += index->table.shards[i].size;
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
    if (cells * sizeof(Cell) != index->table.cell_bytes)
        return "the memory of cells is miscounted";
    if (free_records(index) + entries + blocks != index->table.fresh - PREFIX_MAX_INSTANCES)
        return "records are lost";
    return NULL;
}
