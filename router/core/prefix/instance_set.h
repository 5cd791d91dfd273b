/* Sets of instances, in 52 bits: up to four slots in lanes of 12 bits, each a slot + 1; or POOLED and the index of a
 * bit mask in a pool. The empty set is 0. Most blocks are held by one instance, hot ones by all: neither costs more
 * than it must.
 */
#ifndef POINTSMAN_INSTANCE_SET_H
#define POINTSMAN_INSTANCE_SET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "prefix_index.h"

#if defined(_MSC_VER) && !defined(__clang__)
#include <intrin.h>
static inline uint32_t lowest_bit(uint64_t word)
{
    unsigned long bit;
    _BitScanForward64(&bit, word);
    return (uint32_t)bit;
}
#else
static inline uint32_t lowest_bit(uint64_t word)
{
    return (uint32_t)__builtin_ctzll(word);
}
#endif

#define MASK_WORDS (PREFIX_MAX_INSTANCES / 64)
#define LANE_BITS 12
#define LANES 4u
#define POOLED (1ull << 51)

typedef struct {
    uint64_t words[MASK_WORDS];
} Mask;

typedef struct {
    uint32_t count;
    uint32_t next_free;
    Mask mask;
} PooledMask;

typedef struct {
    PooledMask *masks;
    uint32_t size, fresh;
    uint32_t free; /* index + 1 of the first freed one, 0 when there is none */
} MaskPool;

static inline bool mask_has(const Mask *mask, uint32_t slot)
{
    return mask->words[slot / 64] >> slot % 64 & 1;
}

static inline void mask_add(Mask *mask, uint32_t slot)
{
    mask->words[slot / 64] |= 1ull << slot % 64;
}

static inline uint32_t lane(uint64_t set, uint32_t i)
{
    return (uint32_t)(set >> LANE_BITS * i) & ((1u << LANE_BITS) - 1);
}

static inline bool set_is_pooled(uint64_t set)
{
    return set & POOLED;
}

static inline bool set_has(const MaskPool *pool, uint64_t set, uint32_t slot)
{
    if (set_is_pooled(set))
        return mask_has(&pool->masks[set & ~POOLED].mask, slot);
    for (uint32_t i = 0; i < LANES; i++)
        if (lane(set, i) == slot + 1)
            return true;
    return false;
}

static inline uint32_t set_size(const MaskPool *pool, uint64_t set)
{
    if (set_is_pooled(set))
        return pool->masks[set & ~POOLED].count;
    uint32_t size = 0;
    while (size < LANES && lane(set, size))
        size++;
    return size;
}

static inline bool reserve_pooled(MaskPool *pool)
{
    if (pool->free || pool->fresh < pool->size)
        return true;
    uint32_t size = pool->size + pool->size / 2 + 64;
    PooledMask *masks = realloc(pool->masks, size * sizeof(PooledMask));
    if (!masks)
        return false;
    pool->masks = masks;
    pool->size = size;
    return true;
}

/* Move a full set of lanes into the pool, where room was reserved before. */
static inline uint64_t set_pooled(MaskPool *pool, uint64_t set)
{
    uint32_t at = pool->fresh;
    if (pool->free) {
        at = pool->free - 1;
        pool->free = pool->masks[at].next_free;
    } else {
        pool->fresh++;
    }
    PooledMask *pooled = &pool->masks[at];
    memset(pooled, 0, sizeof *pooled);
    for (uint32_t i = 0; i < LANES; i++)
        mask_add(&pooled->mask, lane(set, i) - 1);
    pooled->count = LANES;
    return POOLED | at;
}

/* Add a slot that is not in the set; in the pool, room was reserved before. */
static inline uint64_t set_with(MaskPool *pool, uint64_t set, uint32_t slot)
{
    uint32_t size = set_size(pool, set);
    if (size < LANES)
        return set | (uint64_t)(slot + 1) << LANE_BITS * size;
    if (size == LANES && !set_is_pooled(set))
        set = set_pooled(pool, set);
    PooledMask *pooled = &pool->masks[set & ~POOLED];
    mask_add(&pooled->mask, slot);
    pooled->count++;
    return set;
}

/* Move what is left in a mask back into lanes. */
static inline uint64_t set_unpooled(MaskPool *pool, uint32_t at)
{
    PooledMask *pooled = &pool->masks[at];
    uint64_t set = 0;
    uint32_t size = 0;
    for (uint32_t w = 0; w < MASK_WORDS; w++)
        for (uint64_t rest = pooled->mask.words[w]; rest; rest &= rest - 1)
            set |= (uint64_t)(w * 64 + lowest_bit(rest) + 1) << LANE_BITS * size++;
    pooled->next_free = pool->free;
    pool->free = at + 1;
    return set;
}

/* Take out a slot that is in the set. */
static inline uint64_t set_without(MaskPool *pool, uint64_t set, uint32_t slot)
{
    if (set_is_pooled(set)) {
        PooledMask *pooled = &pool->masks[set & ~POOLED];
        pooled->mask.words[slot / 64] &= ~(1ull << slot % 64);
        if (--pooled->count >= LANES) /* one lane less than fits, so that no set on the edge goes back and forth */
            return set;
        return set_unpooled(pool, (uint32_t)(set & ~POOLED));
    }
    uint64_t left = 0;
    for (uint32_t i = 0, size = 0; i < LANES; i++)
        if (lane(set, i) && lane(set, i) != slot + 1)
            left |= (uint64_t)lane(set, i) << LANE_BITS * size++;
    return left;
}

#endif
