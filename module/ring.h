/* SPDX-License-Identifier: GPL-2.0 */
/*
 * ring.h - a byte ring between one producer and one consumer
 *
 * What holds: @head is written by the producer alone, @tail by the consumer
 * alone; both run freely and wrap at 2^32, so head - tail is the number of
 * unread bytes and is never above the size. The caller makes sure that there
 * is one producer and one consumer at a time (send.c: tx_lock, recv.c: rx_lock).
 *
 * The file knows no socket and no lock, and compiles unchanged in userspace
 * (test/unit), where the sanitizers run it. Neighbours: send.c produces,
 * recv.c consumes, wait.c sleeps on the want flags.
 *
 * Barriers:
 *  - bytes:  shunt_ring_push() releases @head, shunt_ring_used() acquires it,
 *            so the consumer sees the bytes (and @buf) that @head counts.
 *  - space:  shunt_ring_pop() releases @tail, shunt_ring_space() acquires it,
 *            so the producer overwrites only bytes that were copied out.
 *  - sleep:  a consumer stores @want_data, full barrier, re-reads @head; the
 *            producer stores @head, full barrier, reads @want_data. One of the
 *            two sees the other. @want_space is the same with @tail.
 */
#ifndef SHUNT_RING_H
#define SHUNT_RING_H

#include <linux/types.h>
#include <linux/cache.h>
#include <linux/compiler.h>
#include <linux/minmax.h>
#include <asm/barrier.h>

#define SHUNT_RING_MIN	(4U << 10)
#define SHUNT_RING_MAX	(4U << 20)

struct shunt_ring {
	/* Written once by the producer before the first push. */
	u8 *buf;
	u32 size;		/* bytes, a power of two; 0 until allocated */

	/* Producer's line. */
	u32 head ____cacheline_aligned;
	u32 tail_seen;		/* last @tail that the producer read */
	u32 want_space;		/* free bytes that the producer waits for, or 0 */

	/* Consumer's line. */
	u32 tail ____cacheline_aligned;
	u32 head_seen;		/* last @head that the consumer read */
	u32 want_data;		/* set by the consumer, cleared by the producer */
};

/* Up to two pieces of the buffer that follow each other in the stream. */
struct shunt_span {
	u8 *ptr[2];
	u32 len[2];
};

/* @buf holds @size bytes, a power of two; called once, before any push. */
static inline void shunt_ring_attach(struct shunt_ring *r, u8 *buf, u32 size)
{
	r->buf = buf;
	WRITE_ONCE(r->size, size);
}

static inline void shunt_ring_pieces(const struct shunt_ring *r, u32 pos, u32 n,
				     struct shunt_span *s)
{
	u32 off = pos & (r->size - 1);

	s->ptr[0] = r->buf + off;
	s->len[0] = min(n, r->size - off);
	s->ptr[1] = r->buf;
	s->len[1] = n - s->len[0];
}

/* Producer: free bytes; reads the consumer's line only if fewer than @need. */
static inline u32 shunt_ring_space(struct shunt_ring *r, u32 need)
{
	u32 space = r->size - (r->head - r->tail_seen);

	if (space >= need)
		return space;
	/* space: see the top */
	r->tail_seen = smp_load_acquire(&r->tail);
	return r->size - (r->head - r->tail_seen);
}

/* Producer: where to put the next @n bytes, @n being at most the space. */
static inline void shunt_ring_write_span(const struct shunt_ring *r, u32 n,
					 struct shunt_span *s)
{
	shunt_ring_pieces(r, r->head, n, s);
}

/* Producer: hand over @n bytes that were put where write_span said. */
static inline void shunt_ring_push(struct shunt_ring *r, u32 n)
{
	/* bytes: see the top */
	smp_store_release(&r->head, r->head + n);
}

/*
 * Producer, after a push: does the consumer want to be woken? Clearing comes
 * before the wake, and a consumer is on its wait queue before it sets the flag,
 * so a flag that is set and cleared at the same time still ends in a wake.
 */
static inline bool shunt_ring_wake_consumer(struct shunt_ring *r)
{
	/* sleep: see the top */
	smp_mb();
	if (!READ_ONCE(r->want_data))
		return false;
	WRITE_ONCE(r->want_data, 0);
	return true;
}

/* Producer: ask to be woken when @n bytes are free. Re-check after it. */
static inline void shunt_ring_want_space(struct shunt_ring *r, u32 n)
{
	WRITE_ONCE(r->want_space, n);
	/* sleep: see the top */
	smp_mb();
}

/* Consumer: unread bytes; reads the producer's line only if it knows of none. */
static inline u32 shunt_ring_used(struct shunt_ring *r)
{
	u32 used = r->head_seen - r->tail;

	if (used)
		return used;
	/* bytes: see the top */
	r->head_seen = smp_load_acquire(&r->head);
	return r->head_seen - r->tail;
}

/* Consumer: unread bytes, all that are there now. */
static inline u32 shunt_ring_used_now(struct shunt_ring *r)
{
	/* bytes: see the top */
	r->head_seen = smp_load_acquire(&r->head);
	return r->head_seen - r->tail;
}

/* Anybody: unread bytes at some moment during the call. */
static inline u32 shunt_ring_peek_used(const struct shunt_ring *r)
{
	u32 tail = READ_ONCE(r->tail);

	/* @tail first: the other way round the difference could be negative. */
	smp_rmb();
	return READ_ONCE(r->head) - tail;
}

/* Consumer: where the next @n unread bytes are, @n being at most those used. */
static inline void shunt_ring_read_span(const struct shunt_ring *r, u32 n,
					struct shunt_span *s)
{
	shunt_ring_pieces(r, r->tail, n, s);
}

/* Consumer: give back @n bytes that were copied out. */
static inline void shunt_ring_pop(struct shunt_ring *r, u32 n)
{
	/* space: see the top */
	smp_store_release(&r->tail, r->tail + n);
}

/*
 * Consumer, after a pop: is a producer waiting that now has what it waits for?
 * Reads @head without order: it only decides about a wake, and a producer that
 * moves @head is awake.
 */
static inline bool shunt_ring_wake_producer(struct shunt_ring *r)
{
	u32 want;

	/* sleep: see the top */
	smp_mb();
	want = READ_ONCE(r->want_space);
	if (!want)
		return false;
	if (r->size - (READ_ONCE(r->head) - r->tail) < want)
		return false;
	WRITE_ONCE(r->want_space, 0);
	return true;
}

/* Consumer: ask to be woken by the next push. Re-check after it. */
static inline void shunt_ring_want_data(struct shunt_ring *r)
{
	WRITE_ONCE(r->want_data, 1);
	/* sleep: see the top */
	smp_mb();
}

#endif
