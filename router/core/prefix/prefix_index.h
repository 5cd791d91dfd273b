/* The prefix index: which leading blocks of a prompt every instance is expected to hold. No Python in here.
 *
 * One table for all instances. Its records are of two kinds:
 *
 *   holders    one per distinct block: the set of instances that hold it. What matching reads.
 *   residency  one per block and instance: a link in that instance's list, most recently used first.
 *
 * Invariants, checked by prefix_index_fault():
 *   - an instance is in a block's set exactly when the two of them have a residency, which is in that instance's list;
 *   - along a chain, a parent stands before its child in the list, so that the last of a list is always a leaf, and
 *     evicting from the end keeps residency prefix-closed;
 *   - an instance never holds more than its capacity, all together never more than max_blocks.
 */
#ifndef POINTSMAN_PREFIX_INDEX_H
#define POINTSMAN_PREFIX_INDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PREFIX_MAX_INSTANCES 1024u
#define PREFIX_MAX_BLOCKS 32000000u
#define PREFIX_DEFAULT_BLOCKS 4000000u

typedef struct PrefixIndex PrefixIndex;

/* Block hashes, 8 bytes each, not necessarily aligned. */
typedef struct {
    const unsigned char *hashes;
    size_t blocks;
} Chain;

/* Return NULL when memory is short. max_blocks is 1..PREFIX_MAX_BLOCKS. */
PrefixIndex *prefix_index_new(uint32_t max_blocks);
void prefix_index_free(PrefixIndex *index);

/* Return the smallest free slot, or -1 when all are taken. */
int prefix_index_add(PrefixIndex *index, uint32_t capacity_blocks);
/* The slot of every function below must be taken. */
bool prefix_index_has(const PrefixIndex *index, uint32_t slot);
void prefix_index_remove(PrefixIndex *index, uint32_t slot);
void prefix_index_clear(PrefixIndex *index, uint32_t slot);
void prefix_index_set_capacity(PrefixIndex *index, uint32_t slot, uint32_t capacity_blocks);

/* Touch what is resident of a chain, add the rest, evict what is too much; a chain longer than the capacity is cut.
 * Return false when memory is short: a part of the chain may be missing then, the index is whole. */
bool prefix_index_insert(PrefixIndex *index, uint32_t slot, Chain chain);
/* What an engine itself says; from then on a block may be resident there without its parent. */
bool prefix_index_store(PrefixIndex *index, uint32_t slot, Chain chain);
void prefix_index_discard(PrefixIndex *index, uint32_t slot, Chain chain);

/* Write how many leading blocks every slot below prefix_index_slots() holds. */
void prefix_index_match(const PrefixIndex *index, Chain chain, uint32_t *depths);

uint32_t prefix_index_slots(const PrefixIndex *index);
uint32_t prefix_index_resident(const PrefixIndex *index, uint32_t slot);
uint32_t prefix_index_blocks(const PrefixIndex *index);
uint32_t prefix_index_entries(const PrefixIndex *index);
uint32_t prefix_index_capacity(const PrefixIndex *index);
uint64_t prefix_index_evictions(const PrefixIndex *index);
size_t prefix_index_memory_bytes(const PrefixIndex *index);

/* Return the first broken invariant in words, or NULL. */
const char *prefix_index_fault(const PrefixIndex *index);

#endif
