// SPDX-License-Identifier: GPL-2.0
/*
 * offer.c - how the two ends of one connection find each other
 *
 * The identity of a connection is the pair of initial sequence numbers that
 * its handshake agreed on: 64 bits that nobody outside can guess, the same at
 * both ends whatever NAT, namespaces or mapped addresses lie between. At any
 * time of its life the active end has
 *	(snd_una - bytes_acked, rcv_nxt - bytes_received) = (A, P + 1)
 * where A and P are the two ISNs (the SYN counts as acked there), and the
 * passive end (P + 1, A + 1).
 *
 * The active end's handshake ends first; it puts an offer into a hash table.
 * The passive end looks for it. An offer that nobody matches (the peer is
 * remote, or not under the policy) leaves the table and the socket after half a
 * second; the socket is plain TCP again, with no trace of us.
 *
 * Refused are sockets whose stream we can't know to be TCP's own: see
 * shunt_refuse(). Neighbours: kfunc.c and proto.c call in, pair.c attaches.
 */
#include <linux/hash.h>
#include <linux/skmsg.h>
#include <linux/slab.h>
#include <net/mptcp.h>

#include "shunt.h"

#define SHUNT_OFFER_BITS	10
/*
 * The passive end's handshake ends microseconds later, or after a delayed ACK.
 * Longer would only make connections to other machines carry us longer.
 */
#define SHUNT_OFFER_LIFE	(HZ / 2)
#define SHUNT_SWEEP_PERIOD	(HZ / 4)
#define SHUNT_OFFERS_MAX	65536

struct shunt_bucket {
	spinlock_t lock;
	struct hlist_head head;
};

static struct shunt_bucket offers[1 << SHUNT_OFFER_BITS];
static atomic_t nr_offers = ATOMIC_INIT(0);
static void shunt_sweep(struct work_struct *work);
static DECLARE_DELAYED_WORK(sweep_work, shunt_sweep);

static void shunt_identity(const struct sock *sk, u32 *snd, u32 *rcv)
{
	const struct tcp_sock *tp = tcp_sk(sk);

	*snd = tp->snd_una - (u32)tp->bytes_acked;
	*rcv = tp->rcv_nxt - (u32)tp->bytes_received;
}

static struct shunt_bucket *shunt_bucket(u32 snd, u32 rcv)
{
	return &offers[hash_64((u64)snd << 32 | rcv, SHUNT_OFFER_BITS)];
}

#define REFUSE(why, err) ({ shunt_count(refused_##why); (err); })

static bool shunt_is_signed(const struct sock *sk)
{
#ifdef CONFIG_TCP_MD5SIG
	if (rcu_access_pointer(tcp_sk(sk)->md5sig_info))
		return true;
#endif
#ifdef CONFIG_TCP_AO
	if (rcu_access_pointer(tcp_sk(sk)->ao_info))
		return true;
#endif
	return false;
}

/*
 * sockmap holds sk_user_data. A socket that is in a map without programs reads
 * and writes plain TCP; with programs it doesn't.
 */
static bool shunt_is_idle_sockmap(const struct sock *sk)
{
	struct sk_psock *psock;
	bool idle;

	rcu_read_lock();
	psock = sk_psock(sk);
	idle = psock && !psock->progs.msg_parser &&
	       !psock->progs.stream_parser && !psock->progs.stream_verdict &&
	       !psock->progs.skb_verdict;
	rcu_read_unlock();
	return idle;
}

/* A socket that was disconnected keeps our ULP, with an end that has left. */
static bool shunt_has_ulp(const struct sock *sk)
{
	struct shunt_end *end;

	if (!inet_csk_has_ulp(sk))
		return false;
	end = shunt_end(sk);
	return !end || READ_ONCE(end->state) != SHUNT_LEFT;
}

/* 0, or why the socket can't be joined. @sk is locked or its peer just asks. */
static int shunt_refuse(const struct sock *sk)
{
	if (!sk_fullsock(sk) || !sk_is_tcp(sk) ||
	    !((1 << sk->sk_state) & (TCPF_ESTABLISHED | TCPF_SYN_RECV)))
		return REFUSE(state, -EINVAL);
	if (shunt_has_ulp(sk))
		return REFUSE(ulp, -EEXIST);
	if (sk_is_mptcp(sk))
		return REFUSE(mptcp, -EINVAL);
	if (tcp_sk(sk)->repair)
		return REFUSE(repair, -EINVAL);
	/*
	 * The child of a kernel listener that nobody accepted yet may become a
	 * user's: MPTCP listeners, Go's default, have plain TCP children.
	 */
	if ((sk->sk_kern_sock && sk->sk_socket) || !sk->sk_net_refcnt)
		return REFUSE(kernel, -EINVAL);
	if (READ_ONCE(sk->sk_user_data) && !shunt_is_idle_sockmap(sk))
		return REFUSE(user_data, -EINVAL);
	if (rcu_access_pointer(sk->sk_filter))
		return REFUSE(filter, -EINVAL);
	if (shunt_is_signed(sk))
		return REFUSE(authenticated, -EINVAL);
	return 0;
}

/* What an end needs before it can be attached; nothing can fail after it. */
static const struct shunt_protos *shunt_prepare(struct sock *sk)
{
	const struct shunt_protos *protos;
	struct shunt_end *end = shunt_end(sk);

	if (end)
		return READ_ONCE(end->protos);	/* was disconnected */
	protos = shunt_protos_get(sk->sk_prot);
	return protos ? protos : ERR_PTR(REFUSE(proto, -ENOMEM));
}

/*
 * A socket holds one module reference for its ULP slot. A slot that already is
 * ours has it; setsockopt(TCP_ULP) brings it.
 */
static void shunt_get_module(struct sock *sk, bool by_setsockopt)
{
	if (!by_setsockopt && !shunt_end(sk))
		__module_get(THIS_MODULE);
}

static int shunt_offer_add(struct sock *sk, u32 spin_us, unsigned long expires,
			   bool by_setsockopt)
{
	const struct shunt_protos *protos = shunt_prepare(sk);
	struct shunt_bucket *bucket;
	struct shunt_pair *pair;

	if (IS_ERR(protos))
		return PTR_ERR(protos);
	if (atomic_inc_return(&nr_offers) > SHUNT_OFFERS_MAX) {
		atomic_dec(&nr_offers);
		return REFUSE(offers_full, -ENOSPC);
	}
	pair = shunt_pair_new(sk);
	if (!pair) {
		atomic_dec(&nr_offers);
		return REFUSE(nomem, -ENOMEM);
	}
	shunt_get_module(sk, by_setsockopt);
	pair->expires = expires;
	pair->end[0].spin_us = spin_us;
	shunt_identity(sk, &pair->id_snd, &pair->id_rcv);
	shunt_end_attach(sk, &pair->end[0], protos);

	bucket = shunt_bucket(pair->id_snd, pair->id_rcv);
	spin_lock_bh(&bucket->lock);
	pair->offered = true;
	hlist_add_head(&pair->offer, &bucket->head);
	spin_unlock_bh(&bucket->lock);
	shunt_count(offers);
	shunt_count(offers_pending);
	if (expires && !delayed_work_pending(&sweep_work))
		queue_delayed_work(shunt_wq, &sweep_work,
				   SHUNT_SWEEP_PERIOD);
	return 0;
}

/* The bucket's lock is held. */
static void shunt_offer_unhash(struct shunt_pair *pair)
{
	hlist_del(&pair->offer);
	pair->offered = false;
	atomic_dec(&nr_offers);
	shunt_sub(offers_pending, 1);
}

/* The offering end is gone. */
void shunt_offer_withdraw(struct shunt_pair *pair)
{
	struct shunt_bucket *bucket = shunt_bucket(pair->id_snd, pair->id_rcv);

	if (READ_ONCE(pair->matched))
		return;
	spin_lock_bh(&bucket->lock);
	if (pair->offered)
		shunt_offer_unhash(pair);
	spin_unlock_bh(&bucket->lock);
}

/* Takes the offer of that identity, with a reference for the second end. */
static struct shunt_pair *shunt_offer_take(u32 snd, u32 rcv)
{
	struct shunt_bucket *bucket = shunt_bucket(snd, rcv);
	struct shunt_pair *pair, *found = NULL;

	spin_lock_bh(&bucket->lock);
	hlist_for_each_entry(pair, &bucket->head, offer) {
		if (pair->id_snd != snd || pair->id_rcv != rcv)
			continue;
		shunt_offer_unhash(pair);
		shunt_pair_get(pair);
		found = pair;
		break;
	}
	spin_unlock_bh(&bucket->lock);
	return found;
}

/* @sk becomes the second end of @pair, whose first was offered or is known. */
static void shunt_complete(struct sock *sk, struct shunt_pair *pair,
			   u32 spin_us, const struct shunt_protos *protos,
			   bool by_setsockopt)
{
	struct shunt_end *end = &pair->end[1];

	shunt_get_module(sk, by_setsockopt);
	end->spin_us = spin_us;
	shunt_end_attach(sk, end, protos);
	shunt_end_join(sk, end);
	shunt_count(joins);
	shunt_list_add(pair);
	/* The first end joins at the end of its next locked section. */
	WRITE_ONCE(pair->matched, true);
}

/* ACTIVE_ESTABLISHED: the peer's handshake ends later; wait for it. */
int shunt_offer(struct sock *sk, u32 spin_us)
{
	int err = shunt_refuse(sk);

	if (err)
		return err;
	return shunt_offer_add(sk, spin_us, (jiffies + SHUNT_OFFER_LIFE) | 1,
			       false);
}

/* PASSIVE_ESTABLISHED: the peer has offered already, or never will. */
int shunt_match(struct sock *sk, u32 spin_us)
{
	const struct shunt_protos *protos;
	struct shunt_pair *pair;
	u32 snd, rcv;
	int err;

	err = shunt_refuse(sk);
	if (err)
		return err;
	protos = shunt_prepare(sk);
	if (IS_ERR(protos))
		return PTR_ERR(protos);
	shunt_identity(sk, &snd, &rcv);
	pair = shunt_offer_take(rcv - 1, snd);
	if (!pair)
		return REFUSE(no_offer, -ENOENT);
	shunt_complete(sk, pair, spin_us, protos, false);
	return 0;
}

/*
 * setsockopt(TCP_ULP): both applications ask, in any order and at any time. A
 * socket doesn't know whether it was the active one, so both are tried.
 */
int shunt_join_self(struct sock *sk)
{
	const struct shunt_protos *protos;
	struct shunt_pair *pair;
	u32 snd, rcv;
	int err;

	if (sk->sk_state != TCP_ESTABLISHED)
		return REFUSE(state, -ENOTCONN);
	err = shunt_refuse(sk);
	if (err)
		return err;
	protos = shunt_prepare(sk);
	if (IS_ERR(protos))
		return PTR_ERR(protos);
	shunt_identity(sk, &snd, &rcv);
	pair = shunt_offer_take(rcv - 1, snd);
	if (!pair)
		pair = shunt_offer_take(rcv, snd + 1);
	if (!pair)
		return shunt_offer_add(sk, 0, 0, true);
	shunt_complete(sk, pair, 0, protos, true);
	return 0;
}

static bool shunt_are_peers(const struct sock *peer, u32 snd, u32 rcv)
{
	u32 psnd, prcv;

	shunt_identity(peer, &psnd, &prcv);
	return (psnd == rcv - 1 && prcv == snd) ||
	       (psnd == rcv && prcv == snd + 1);
}

/* The named peer turned out not to be one; its would-be partner stays TCP. */
static void shunt_abandon(struct shunt_pair *pair)
{
	struct shunt_end *end = &pair->end[1];

	WRITE_ONCE(end->state, SHUNT_LEFT);
	shunt_list_del(pair);
}

/* Process context, the peer of bpf_sock_splice_pair() can be locked. */
static void shunt_attach_work(struct work_struct *work)
{
	struct shunt_pair *pair = container_of(work, struct shunt_pair,
					       attach_work);
	struct sock *peer = pair->end[0].held;
	const struct shunt_protos *protos;
	int err;

	lock_sock(peer);
	err = shunt_refuse(peer);
	if (!err && !shunt_are_peers(peer, pair->id_snd, pair->id_rcv))
		err = REFUSE(not_peers, -EINVAL);
	protos = err ? ERR_PTR(err) : shunt_prepare(peer);
	if (IS_ERR(protos)) {
		shunt_abandon(pair);
	} else {
		shunt_get_module(peer, false);
		shunt_pair_get(pair);
		shunt_end_attach(peer, &pair->end[0], protos);
		WRITE_ONCE(pair->matched, true);
	}
	release_sock(peer);
	sock_put(peer);
	shunt_pair_put(pair);
}

/*
 * The RFC's call: the program found @peer itself. @sk is locked by the
 * callback; the peer, often inside its own connect(), is attached later.
 */
int shunt_join_peer(struct sock *sk, struct sock *peer)
{
	const struct shunt_protos *protos;
	struct shunt_pair *pair;
	struct shunt_end *end;
	int err;

	if (peer == sk)
		return REFUSE(not_peers, -EINVAL);
	err = shunt_refuse(sk);
	if (!err)
		err = shunt_refuse(peer);
	if (err)
		return err;
	protos = shunt_prepare(sk);
	if (IS_ERR(protos))
		return PTR_ERR(protos);
	pair = shunt_pair_new(sk);
	if (!pair)
		return REFUSE(nomem, -ENOMEM);

	shunt_identity(sk, &pair->id_snd, &pair->id_rcv);
	end = &pair->end[1];
	shunt_get_module(sk, false);
	shunt_end_attach(sk, end, protos);
	shunt_end_join(sk, end);
	shunt_count(joins);
	shunt_list_add(pair);

	sock_hold(peer);
	pair->end[0].held = peer;
	shunt_pair_get(pair);
	INIT_WORK(&pair->attach_work, shunt_attach_work);
	queue_work(shunt_wq, &pair->attach_work);
	return 0;
}

/* Gives a socket back to TCP whose offer nobody took. */
static void shunt_expire(struct shunt_pair *pair, struct sock *sk)
{
	lock_sock(sk);
	if (shunt_end(sk) == &pair->end[0] &&
	    pair->end[0].state == SHUNT_OFFERED) {
		shunt_count(offers_expired);
		shunt_unoffer(sk, &pair->end[0]);
	}
	release_sock(sk);
}

/* Moves the expired offers of a bucket to @list, with references. */
static void shunt_sweep_bucket(struct shunt_bucket *bucket,
			       struct hlist_head *list, bool *more)
{
	struct shunt_pair *pair;
	struct hlist_node *next;

	spin_lock_bh(&bucket->lock);
	hlist_for_each_entry_safe(pair, next, &bucket->head, offer) {
		if (!pair->expires)
			continue;
		*more = true;
		if (time_before(jiffies, pair->expires))
			continue;
		shunt_offer_unhash(pair);
		shunt_pair_get(pair);
		/* In the table means attached: the end's own hold is there. */
		sock_hold(pair->end[0].held);
		hlist_add_head(&pair->offer, list);
	}
	spin_unlock_bh(&bucket->lock);
}

static void shunt_sweep(struct work_struct *work)
{
	struct shunt_pair *pair;
	struct hlist_node *next;
	bool more = false;
	int i;

	for (i = 0; i < ARRAY_SIZE(offers); i++) {
		HLIST_HEAD(list);

		if (hlist_empty(&offers[i].head))
			continue;
		shunt_sweep_bucket(&offers[i], &list, &more);
		hlist_for_each_entry_safe(pair, next, &list, offer) {
			struct sock *sk = pair->end[0].held;

			shunt_expire(pair, sk);
			sock_put(sk);
			shunt_pair_put(pair);
		}
		cond_resched();
	}
	if (more)
		queue_delayed_work(shunt_wq, &sweep_work,
				   SHUNT_SWEEP_PERIOD);
}

void shunt_offer_stop(void)
{
	cancel_delayed_work_sync(&sweep_work);
}

int shunt_offer_init(void)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(offers); i++) {
		spin_lock_init(&offers[i].lock);
		INIT_HLIST_HEAD(&offers[i].head);
	}
	return 0;
}
