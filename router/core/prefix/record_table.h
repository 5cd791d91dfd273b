/* The table of records: (key, slot) -> record, for as many blocks and instances as there are.
 *
 * Open addressing with linear probing and no tombstones, in shards that grow one at a time, so that no growth stops the
 * caller for long. Records themselves never move: their array is reserved whole, and its pages are used only once they
 * are written. Everything is in a header so that the compiler sees through it.
 */
#ifndef POINTSMAN_RECORD_TABLE_H
#define POINTSMAN_RECORD_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "prefix_index.h"

/* A macro, called where the data is needed: GCC takes a function that only prefetches for pure, and drops its calls. */
#if defined(__GNUC__) || defined(__clang__)
#define PREFETCH(address) __builtin_prefetch(address)
#else
#define PREFETCH(address) ((void)(address))
#endif

#define SHARDS 256u
#define SHARD_CELLS 8u /* to begin with */
#define HOLDERS 4095u  /* stands for the slot in records of kind "holders" */
#define NONE 0u        /* no record: index 0 is the list head of slot 0, which is never in the table */

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
            uint64_t set : 52;  /* see instance_set.h */
            uint64_t slot : 12; /* HOLDERS */
        } block;
        uint64_t next_free;
    } as;
} Record;

typedef struct {
    uint32_t hash;
    uint32_t record;
} Cell;

/* At most three quarters full. */
typedef struct {
    Cell *cells;
    uint32_t size;
    uint32_t used;
} Shard;

typedef struct {
    Shard shards[SHARDS];
    Record *records; /* the first PREFIX_MAX_INSTANCES are list heads */
    uint32_t fresh;  /* records from here on were never used */
    uint32_t free;   /* the first of the freed ones, or NONE */
    size_t cell_bytes;
} RecordTable;

/* Spread hashes that are not random (ids of traces); a bijection, so that equal keys are equal hashes. */
static inline uint64_t key_of(Chain chain, size_t block)
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
static inline uint64_t place_of(uint64_t key, uint32_t slot)
{
    return (key ^ (slot + 1) * 0x9e3779b97f4a7c15ull) * 0xff51afd7ed558ccdull;
}

static inline uint32_t hash_in(uint64_t place)
{
    return (uint32_t)(place >> 24);
}

static inline Shard *shard_at(const RecordTable *table, uint64_t place)
{
    return (Shard *)&table->shards[place >> 56];
}

static inline uint32_t home_of(uint32_t hash, uint32_t size)
{
    return (uint32_t)((uint64_t)hash * size >> 32);
}

/* Return the record of (key, slot), or NONE; place is place_of() the two. */
static inline uint32_t find_at(const RecordTable *table, uint64_t place, uint64_t key, uint32_t slot)
{
    const Shard *shard = shard_at(table, place);
    uint32_t hash = hash_in(place);
    for (uint32_t i = home_of(hash, shard->size); shard->cells[i].record != NONE;) {
        if (shard->cells[i].hash == hash) {
            const Record *record = &table->records[shard->cells[i].record];
            if (record->key == key && record->as.link.slot == slot)
                return shard->cells[i].record;
        }
        if (++i == shard->size)
            i = 0;
    }
    return NONE;
}

static inline uint32_t find(const RecordTable *table, uint64_t key, uint32_t slot)
{
    return find_at(table, place_of(key, slot), key, slot);
}

static inline void put_cell(Shard *shard, Cell cell)
{
    uint32_t i = home_of(cell.hash, shard->size);
    while (shard->cells[i].record != NONE)
        if (++i == shard->size)
            i = 0;
    shard->cells[i] = cell;
}

/* Make room for one more cell. */
static inline bool reserve_cell(RecordTable *table, Shard *shard)
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
    table->cell_bytes += (size_t)(grown.size - shard->size) * sizeof(Cell);
    free(shard->cells);
    *shard = grown;
    return true;
}

/* Take a record out of the table, and close the gap so that every other one is still found. */
static inline void remove_cell(RecordTable *table, uint64_t place, uint32_t record)
{
    Shard *shard = shard_at(table, place);
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
static inline uint32_t new_record(RecordTable *table, uint64_t place, uint64_t key)
{
    uint32_t at = table->free;
    if (at != NONE)
        table->free = (uint32_t)table->records[at].as.next_free;
    else
        at = table->fresh++;
    table->records[at].key = key;
    Shard *shard = shard_at(table, place);
    put_cell(shard, (Cell){hash_in(place), at});
    shard->used++;
    return at;
}

static inline void free_record(RecordTable *table, uint64_t place, uint32_t at)
{
    remove_cell(table, place, at);
    table->records[at].as.next_free = table->free;
    table->free = at;
}

/* Where a search begins. */
static inline const Cell *home_cell(const RecordTable *table, uint64_t place)
{
    const Shard *shard = shard_at(table, place);
    return &shard->cells[home_of(hash_in(place), shard->size)];
}

/* The record that a search most likely ends at; reads cells only. */
static inline const Record *likely_record(const RecordTable *table, uint64_t place)
{
    const Shard *shard = shard_at(table, place);
    uint32_t hash = hash_in(place), i = home_of(hash, shard->size);
    while (shard->cells[i].record != NONE && shard->cells[i].hash != hash)
        if (++i == shard->size)
            i = 0;
    return &table->records[shard->cells[i].record];
}

static inline void table_free(RecordTable *table)
{
    for (uint32_t i = 0; i < SHARDS; i++)
        free(table->shards[i].cells);
    free(table->records);
}

/* Set up a zeroed table; after a failure (false) it still has to be freed. */
static inline bool table_init(RecordTable *table, size_t most_records)
{
    table->fresh = PREFIX_MAX_INSTANCES;
    table->free = NONE;
    table->records = calloc(PREFIX_MAX_INSTANCES + most_records, sizeof(Record));
    if (!table->records)
        return false;
    for (uint32_t i = 0; i < SHARDS; i++) {
        table->shards[i].size = SHARD_CELLS;
        table->shards[i].cells = calloc(SHARD_CELLS, sizeof(Cell));
        if (!table->shards[i].cells)
            return false;
    }
    table->cell_bytes = SHARDS * SHARD_CELLS * sizeof(Cell);
    return true;
}

#endif
