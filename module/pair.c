// SPDX-License-Identifier: GPL-2.0
/*
 * pair.c - ends and pairs: make, attach, join, arm, detach, free
 *
 * What holds: neither socket holds the other. A pair has a reference for each
 * attached end; a reference on an end's socket goes one RCU grace period after
 * that socket let go of its end (see "Lifetime" in shunt.h).
 * Neighbours: offer.c brings two ends together, proto.c calls the update at
 * the end of every locked section and the detach when a socket dies.
 */
#include <linux/mm.h>
#include <linux/slab.h>

#include "shunt.h"
#include "compat/compat.h"

static struct kmem_cache *pair_cache;

int shunt_pair_init(void)
{
	pair_cache = kmem_cache_create("shunt_pair", sizeof(struct shunt_pair),
				       0, SLAB_HWCACHE_ALIGN | SLAB_ACCOUNT,
				       NULL);
	return pair_cache ? 0 : -ENOMEM;
}

/* After rcu_barrier(): the last ends are freed by RCU callbacks. */
void shunt_pair_exit(void)
{
	kmem_cache_destroy(pair_cache);
}

static void shunt_end_init(struct shunt_pair *pair, int index)
{
	struct shunt_end *end = &pair->end[index];

	end->pair = pair;
	end->index = index;
	mutex_init(&end->tx_lock);
	mutex_init(&end->rx_lock);
	init_waitqueue_head(&pair->dir[index].space_wq);
}

/* In softirq too. Charged to the memory cgroup that @sk belongs to. */
struct shunt_pair *shunt_pair_new(struct sock *sk)
{
	struct mem_cgroup *old = set_active_memcg(shunt_sk_memcg(sk));
	struct shunt_pair *pair;

	pair = kmem_cache_zalloc(pair_cache, GFP_ATOMIC | __GFP_NOWARN);
	set_active_memcg(old);
	if (!pair)
		return NULL;
	refcount_set(&pair->refs, 1);
	shunt_end_init(pair, 0);
	shunt_end_init(pair, 1);
	INIT_DELAYED_WORK(&pair->fin_work, shunt_fin_work);
	shunt_count(pairs_held);
	return pair;
}

void shunt_pair_get(struct shunt_pair *pair)
{
	refcount_inc(&pair->refs);
}

static void shunt_ring_free(struct shunt_ring *ring)
{
	if (!ring->buf)
		return;
	shunt_sub(rings, 1);
	shunt_sub(ring_memory, ring->size);
	free_pages((unsigned long)ring->buf, get_order(ring->size));
	ring->buf = NULL;
}

static void shunt_rings_free(struct shunt_pair *pair)
{
	shunt_ring_free(&pair->dir[0].ring);
	shunt_ring_free(&pair->dir[1].ring);
}

/*
 * Nobody calls into @end any more. With the second end the rings go, though
 * the sockets may stay for minutes, sending their FINs.
 */
void shunt_end_close(struct shunt_end *end)
{
	if (xchg(&end->closed, true))
		return;
	if (atomic_inc_return(&end->pair->nr_closed) == 2)
		shunt_rings_free(end->pair);
}

void shunt_pair_put(struct shunt_pair *pair)
{
	if (!refcount_dec_and_test(&pair->refs))
		return;
	shunt_rings_free(pair);
	shunt_sub(pairs_held, 1);
	kmem_cache_free(pair_cache, pair);
}

/*
 * Gives the locked @sk the end @end, in the state OFFERED. The caller brings
 * the pair's reference and the module's.
 */
void shunt_end_attach(struct sock *sk, struct shunt_end *end,
		      const struct shunt_protos *protos)
{
	sock_hold(sk);
	end->held = sk;
	end->protos = protos;
	end->former = shunt_end(sk);
	end->state = SHUNT_OFFERED;
	rcu_assign_pointer(end->sk, sk);
	shunt_ulp_set(sk, end);
	/* Pairs with the barrier in shunt_end(): the end before the way to it. */
	smp_store_release(&sk->sk_prot, (struct proto *)&protos->offered);
}

/* The locked @sk reads and writes through us from here on. */
void shunt_end_join(struct sock *sk, struct shunt_end *end)
{
	struct shunt_dir *in = shunt_in(end);

	end->data_ready = sk->sk_data_ready;
	WRITE_ONCE(in->reader.tcp_seen, tcp_sk(sk)->copied_seq);
	/* Whoever polled before us did not ask the ring for a wake-up. */
	WRITE_ONCE(in->ring.want_data, 1);
	WRITE_ONCE(end->state, SHUNT_JOINED);
	/* Pairs with the barrier in shunt_end(), as above. */
	smp_store_release(&sk->sk_prot, (struct proto *)&end->protos->joined);
}

/* Why the writer of the other side has to use TCP: what a ring can't do. */
static u32 shunt_reader_quirks(const struct sock *sk,
			       const struct shunt_end *end)
{
	u32 quirks = 0;

	if (rcu_access_pointer(sk->sk_filter))
		quirks |= SHUNT_R_FILTER;
	if (sock_flag(sk, SOCK_RCVTSTAMP) || READ_ONCE(sk->sk_tsflags))
		quirks |= SHUNT_R_TIMESTAMP;
	if (READ_ONCE(sk->sk_rcvlowat) > 1)
		quirks |= SHUNT_R_LOWAT;
	if (READ_ONCE(sk->sk_data_ready) != end->data_ready)
		quirks |= SHUNT_R_TAKEN;
	if (tcp_sk(sk)->repair)
		quirks |= SHUNT_R_REPAIR;
	if (READ_ONCE(sk->sk_peek_off) >= 0)
		quirks |= SHUNT_R_PEEK_OFF;
	if (sock_flag(sk, SOCK_FASYNC))
		quirks |= SHUNT_R_SIGIO;
	if (READ_ONCE(sk->sk_shutdown) & RCV_SHUTDOWN)
		quirks |= SHUNT_R_SHUTDOWN;
	return quirks;
}

/* Why this side's own writer has to. */
static enum shunt_fallback shunt_writer_quirk(const struct sock *sk)
{
	if (READ_ONCE(sk->sk_tsflags))
		return SHUNT_FB_timestamp;
	if (READ_ONCE(sk->sk_max_pacing_rate) != ~0UL)
		return SHUNT_FB_pacing;
	if (tcp_sk(sk)->repair)
		return SHUNT_FB_repair;
	return SHUNT_FB_none;
}

/* splice() and shutdown() reach a socket by its proto_ops, not its proto. */
static void shunt_install_ops(struct sock *sk, struct shunt_end *end)
{
	struct socket *sock = sk->sk_socket;

	if (end->ops || !sock)
		return;
	end->ops = shunt_ops_get(shunt_base_ops(sock));
	if (end->ops)
		WRITE_ONCE(sock->ops, &end->ops->joined);
}

/*
 * A writer may use the ring only once the reader looks there. An accepted
 * socket was never read by anything but us. On a connected one a thread may
 * sleep in TCP's own recvmsg since before it was joined; until it is gone, the
 * bytes go where it looks.
 */
static u32 shunt_ready_flag(struct sock *sk, struct shunt_end *end)
{
	u32 ready = READ_ONCE(shunt_in(end)->reader.flags) & SHUNT_R_READY;

	/* Only now it shows whether the kernel accepted it for itself. */
	if (ready || !end->ops || sk->sk_kern_sock)
		return ready;
	return shunt_has_stale_waiter(sk) ? 0 : SHUNT_R_READY;
}

/*
 * Runs with @sk locked whenever a locked section ends: the one place where the
 * options, callbacks and states that others set under the lock are noticed.
 */
void shunt_end_update(struct sock *sk, struct shunt_end *end)
{
	struct shunt_dir *in = shunt_in(end);
	u32 flags;

	if (end->state == SHUNT_OFFERED && READ_ONCE(end->pair->matched))
		shunt_end_join(sk, end);
	if (end->state != SHUNT_JOINED)
		return;
	shunt_install_ops(sk, end);
	flags = shunt_ready_flag(sk, end) | shunt_reader_quirks(sk, end) |
		(READ_ONCE(in->reader.flags) &
		 (SHUNT_R_CLOSED | SHUNT_R_LEFT));
	if (flags != READ_ONCE(in->reader.flags))
		WRITE_ONCE(in->reader.flags, flags);
	WRITE_ONCE(end->writer_quirk, shunt_writer_quirk(sk));
}

static void shunt_end_free(struct rcu_head *rcu)
{
	struct shunt_end *end = container_of(rcu, struct shunt_end, rcu);

	sock_put(end->held);
	shunt_pair_put(end->pair);
}

/*
 * The socket lets go of @end; it is destroyed, or was never matched. The peer
 * may be using end->sk under RCU.
 */
void shunt_end_detach(struct shunt_end *end)
{
	struct shunt_dir *in = shunt_in(end);

	shunt_offer_withdraw(end->pair);
	shunt_list_del(end->pair);
	WRITE_ONCE(end->state, SHUNT_LEFT);
	WRITE_ONCE(in->reader.flags, SHUNT_R_CLOSED);
	rcu_assign_pointer(end->sk, NULL);
	wake_up_all(&in->space_wq);
	shunt_end_close(end);
	call_rcu(&end->rcu, shunt_end_free);
}
