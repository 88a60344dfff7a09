// SPDX-License-Identifier: GPL-2.0
/*
 * ring_test.c - module/ring.h, as it is, against a plain queue and two threads
 *
 *	ring_test [queue|wrap|wake|threads]...	all unless told
 *
 * queue:   random pushes and pops, every byte and every count compared
 * wrap:    the same with cursors about to wrap at 2^32
 * wake:    the want flags, single-threaded: set, cleared, thresholds
 * threads: a producer and a consumer that really sleep on the want flags; a
 *          lost wake-up is a test that does not end within its alarm
 * Neighbours: shim/, the few kernel headers that the ring includes.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ring.h"

#define CHECK(cond) do {						\
	if (!(cond)) {							\
		fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #cond); \
		exit(1);						\
	}								\
} while (0)

static u32 rnd_state = 1;

static u32 rnd(u32 below)
{
	rnd_state = rnd_state * 1664525 + 1013904223;
	return (u64)(rnd_state >> 8) * below >> 24;
}

static void ring_make(struct shunt_ring *r, u32 size, u32 start)
{
	memset(r, 0, sizeof(*r));
	r->head = r->tail = r->tail_seen = r->head_seen = start;
	shunt_ring_attach(r, malloc(size), size);
}

static void put(struct shunt_ring *r, const u8 *from, u32 n)
{
	struct shunt_span s;

	shunt_ring_write_span(r, n, &s);
	memcpy(s.ptr[0], from, s.len[0]);
	memcpy(s.ptr[1], from + s.len[0], s.len[1]);
	shunt_ring_push(r, n);
}

static void get(struct shunt_ring *r, u8 *to, u32 n)
{
	struct shunt_span s;

	shunt_ring_read_span(r, n, &s);
	memcpy(to, s.ptr[0], s.len[0]);
	memcpy(to + s.len[0], s.ptr[1], s.len[1]);
	shunt_ring_pop(r, n);
}

/* The queue is the stream itself: byte number i has the value of i's low bits. */
static void queue_test(u32 size, u32 start)
{
	static u8 buf[SHUNT_RING_MIN * 4];
	u32 in = 0, out = 0, n, i, space, used;
	struct shunt_ring r;
	int round;

	ring_make(&r, size, start);
	for (round = 0; round < 200000; round++) {
		space = shunt_ring_space(&r, size);
		used = shunt_ring_used_now(&r);
		CHECK(used == in - out);
		CHECK(space == size - used);
		CHECK(shunt_ring_peek_used(&r) == used);
		if (rnd(2) && space) {
			n = 1 + rnd(space);
			for (i = 0; i < n; i++)
				buf[i] = in + i;
			put(&r, buf, n);
			in += n;
		} else if (used) {
			n = 1 + rnd(used);
			get(&r, buf, n);
			for (i = 0; i < n; i++)
				CHECK(buf[i] == (u8)(out + i));
			out += n;
		}
	}
	CHECK(in > size * 16);
	free(r.buf);
}

static void wake_test(void)
{
	u8 buf[SHUNT_RING_MIN] = { 0 };
	struct shunt_ring r;

	ring_make(&r, SHUNT_RING_MIN, 0);
	put(&r, buf, 1);
	CHECK(!shunt_ring_wake_consumer(&r));
	shunt_ring_want_data(&r);
	put(&r, buf, 1);
	CHECK(shunt_ring_wake_consumer(&r));
	put(&r, buf, 1);
	CHECK(!shunt_ring_wake_consumer(&r));

	put(&r, buf, shunt_ring_space(&r, SHUNT_RING_MIN));
	CHECK(!shunt_ring_space(&r, 1));
	shunt_ring_want_space(&r, SHUNT_RING_MIN / 2);
	get(&r, buf, 10);
	CHECK(!shunt_ring_wake_producer(&r));
	get(&r, buf, SHUNT_RING_MIN / 2);
	CHECK(shunt_ring_wake_producer(&r));
	CHECK(!shunt_ring_wake_producer(&r));
	free(r.buf);
}

/* Two threads; each sleeps on a condition, the kernel's wait queue here. */
static struct shunt_ring shared;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t data_cond = PTHREAD_COND_INITIALIZER;
static pthread_cond_t space_cond = PTHREAD_COND_INITIALIZER;
static const u64 total = 64 << 20;

static void wake(pthread_cond_t *cond)
{
	pthread_mutex_lock(&lock);
	pthread_cond_broadcast(cond);
	pthread_mutex_unlock(&lock);
}

static void *producer(void *arg)
{
	static u8 buf[SHUNT_RING_MIN];
	u32 seed = 7, n, i;
	u64 sent = 0;

	(void)arg;
	while (sent < total) {
		seed = seed * 1664525 + 1013904223;
		n = 1 + (seed >> 8) % (seed & 1 ? SHUNT_RING_MIN / 2 : 64);
		n = min((u64)n, total - sent);
		for (i = 0; i < n; i++)
			buf[i] = (u8)((sent + i) * 31);
		while (shunt_ring_space(&shared, n) < n) {
			pthread_mutex_lock(&lock);
			shunt_ring_want_space(&shared, n);
			if (shunt_ring_space(&shared, n) < n)
				pthread_cond_wait(&space_cond, &lock);
			pthread_mutex_unlock(&lock);
		}
		put(&shared, buf, n);
		sent += n;
		if (shunt_ring_wake_consumer(&shared))
			wake(&data_cond);
	}
	return NULL;
}

static void *consumer(void *arg)
{
	static u8 buf[SHUNT_RING_MIN];
	u64 got = 0;
	u32 n, i;

	(void)arg;
	while (got < total) {
		while (!(n = shunt_ring_used(&shared))) {
			pthread_mutex_lock(&lock);
			shunt_ring_want_data(&shared);
			if (!shunt_ring_used(&shared))
				pthread_cond_wait(&data_cond, &lock);
			pthread_mutex_unlock(&lock);
		}
		get(&shared, buf, n);
		for (i = 0; i < n; i++)
			CHECK(buf[i] == (u8)((got + i) * 31));
		got += n;
		if (shunt_ring_wake_producer(&shared))
			wake(&space_cond);
	}
	return NULL;
}

static void threads_test(void)
{
	pthread_t p, c;

	ring_make(&shared, SHUNT_RING_MIN, 0xfffff000);
	CHECK(!pthread_create(&c, NULL, consumer, NULL));
	CHECK(!pthread_create(&p, NULL, producer, NULL));
	CHECK(!pthread_join(p, NULL));
	CHECK(!pthread_join(c, NULL));
	free(shared.buf);
}

static void run(const char *name)
{
	alarm(120);
	if (!strcmp(name, "queue")) {
		queue_test(SHUNT_RING_MIN, 0);
		queue_test(SHUNT_RING_MIN * 4, 0);
	} else if (!strcmp(name, "wrap")) {
		queue_test(SHUNT_RING_MIN, 0xfffffff0);
	} else if (!strcmp(name, "wake")) {
		wake_test();
	} else if (!strcmp(name, "threads")) {
		threads_test();
	} else {
		fprintf(stderr, "ring_test: no test \"%s\"\n", name);
		exit(2);
	}
	printf("PASS unit/ring-%s\n", name);
}

int main(int argc, char **argv)
{
	static const char * const all[] = { "queue", "wrap", "wake", "threads" };
	int i;

	for (i = 1; i < argc; i++)
		run(argv[i]);
	for (i = 0; argc == 1 && i < 4; i++)
		run(all[i]);
	return 0;
}
