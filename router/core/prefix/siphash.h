/* SipHash-1-3 (Aumasson and Bernstein, "SipHash: a fast short-input PRF", 2012) over a growing prefix.
 *
 * The state takes in whole 64-bit words; the hash of what was taken in so far is read from a copy, so that one pass
 * over a prompt gives the hash of every prefix of it. The usual last word with the length is left out: the framing of
 * what is hashed (a length, the key, whole blocks) makes the length clear.
 */
#ifndef POINTSMAN_SIPHASH_H
#define POINTSMAN_SIPHASH_H

#include <stdint.h>
#include <string.h>

typedef struct {
    uint64_t v0, v1, v2, v3;
} SipState;

static inline uint64_t sip_rotate(uint64_t x, int bits)
{
    return x << bits | x >> (64 - bits);
}

static inline uint64_t sip_word(const unsigned char *bytes)
{
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    uint64_t word = 0;
    for (int i = 7; i >= 0; i--)
        word = word << 8 | bytes[i];
    return word;
#else
    uint64_t word;
    memcpy(&word, bytes, 8);
    return word;
#endif
}

static inline void sip_round(SipState *s)
{
    s->v0 += s->v1;
    s->v1 = sip_rotate(s->v1, 13) ^ s->v0;
    s->v0 = sip_rotate(s->v0, 32);
    s->v2 += s->v3;
    s->v3 = sip_rotate(s->v3, 16) ^ s->v2;
    s->v0 += s->v3;
    s->v3 = sip_rotate(s->v3, 21) ^ s->v0;
    s->v2 += s->v1;
    s->v1 = sip_rotate(s->v1, 17) ^ s->v2;
    s->v2 = sip_rotate(s->v2, 32);
}

static inline SipState sip_start(const unsigned char seed[16])
{
    uint64_t k0 = sip_word(seed), k1 = sip_word(seed + 8);
    SipState s = {k0 ^ 0x736f6d6570736575ull, k1 ^ 0x646f72616e646f6dull, k0 ^ 0x6c7967656e657261ull,
                  k1 ^ 0x7465646279746573ull};
    return s;
}

static inline void sip_take(SipState *s, uint64_t word)
{
    s->v3 ^= word;
    sip_round(s);
    s->v0 ^= word;
}

static inline uint64_t sip_read(SipState s)
{
    s.v2 ^= 0xff;
    sip_round(&s);
    sip_round(&s);
    sip_round(&s);
    return s.v0 ^ s.v1 ^ s.v2 ^ s.v3;
}

#endif
