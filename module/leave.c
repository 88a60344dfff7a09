// SPDX-License-Identifier: GPL-2.0
/*
 * leave.c - a socket goes back to plain TCP and lives on
 *
 * Another ULP (kTLS) wants the slot, or an offer was not matched. A joined end
 * first stops its writer, then moves what it has not read into TCP's queue
 * (spill.c); what it wrote stays in the ring until the peer has read it.
 *
 * Other threads may be inside our calls with the end in their hands, so it is
 * parked until the socket is destroyed: sk_destruct is ours for that. An
 * unmatched end was only ever used with the socket locked, or under RCU, and
 * goes at once.
 */
#include <linux/hashtable.h>
#include <net/inet_common.h>

#include "shunt.h"

static DEFINE_HASHTABLE(parked, 8);
static DEFINE_SPINLOCK(parked_lock);

/* Out of the table, one at a time: a socket may have left more than once. */
static struct shunt_end *shunt_unpark(struct sock *sk)
{
	struct shunt_end *end;

	spin_lock_bh(&parked_lock);
	hash_for_each_possible(parked, end, parked, (unsigned long)sk) {
		if (end->parked_sk != sk)
			continue;
		hash_del(&end->parked);
		spin_unlock_bh(&parked_lock);
		return end;
	}
	spin_unlock_bh(&parked_lock);
	return NULL;
}

/* Nobody uses the socket any more; any context. */
static void shunt_destruct(struct sock *sk)
{
	void (*destruct)(struct sock *sk) = inet_sock_destruct;
	struct shunt_end *end;

	while ((end = shunt_unpark(sk))) {
		if (end->destruct != shunt_destruct)
			destruct = end->destruct;
		shunt_pair_put(end->pair);
		module_put(THIS_MODULE);
	}
	destruct(sk);
}

/* @sk locked. Keeps @end's memory, and us, until the socket is destroyed. */
static void shunt_park(struct sock *sk, struct shunt_end *end)
{
	end->parked_sk = sk;
	end->destruct = sk->sk_destruct;
	sk->sk_destruct = shunt_destruct;
	shunt_pair_get(end->pair);
	spin_lock_bh(&parked_lock);
	hash_add(parked, &end->parked, (unsigned long)sk);
	spin_unlock_bh(&parked_lock);
}

/* @sk locked, its end unmatched: no call but locked ones knows of it. */
void shunt_unoffer(struct sock *sk, struct shunt_end *end)
{
	if (end->former) {
		/* The slot is the socket's former life's too: it stays. */
		shunt_offer_withdraw(end->pair);
		WRITE_ONCE(end->state, SHUNT_LEFT);
		return;
	}
	shunt_ulp_clear(sk, end);
	shunt_end_detach(end);
	module_put(THIS_MODULE);
}

/* @sk locked, the ring dry. The slot's module reference goes to the parked. */
static void shunt_clear_joined(struct sock *sk, struct shunt_end *end)
{
	struct shunt_end *former;
	bool first = true;

	shunt_ulp_clear(sk, end);
	for (; end; end = former, first = false) {
		former = end->former;
		if (!first)
			__module_get(THIS_MODULE);
		shunt_park(sk, end);
		shunt_end_detach(end);
	}
	shunt_count(parts);
}

/* The writer stops, and what it wrote becomes TCP's; or nothing happens. */
static int shunt_drain(struct sock *sk, struct shunt_end *end)
{
	struct shunt_dir *in = shunt_in(end);
	u32 *flags = &in->reader.flags;
	int err;

	mutex_lock(&end->rx_lock);
	lock_sock(sk);
	WRITE_ONCE(*flags, *flags | SHUNT_R_LEFT);
	release_sock(sk);
	/* Takes the writer's lock: after it, no writer is still pushing. */
	err = shunt_spill(sk, end);
	lock_sock(sk);
	if (err)
		WRITE_ONCE(*flags, *flags & ~SHUNT_R_LEFT);
	else
		WRITE_ONCE(end->state, SHUNT_LEFT);
	release_sock(sk);
	mutex_unlock(&end->rx_lock);
	/* Our own writers look at the state under tx_lock. */
	mutex_lock(&end->tx_lock);
	mutex_unlock(&end->tx_lock);
	return err;
}

/* A joined end that is safe to use without a lock, or NULL. */
static struct shunt_end *shunt_joined_end(struct sock *sk)
{
	struct shunt_end *end;

	lock_sock(sk);
	end = shunt_end(sk);
	if (end && end->state == SHUNT_OFFERED) {
		shunt_unoffer(sk, end);
		end = NULL;
	}
	release_sock(sk);
	return end;
}

static int shunt_leave(struct sock *sk)
{
	struct shunt_end *end = shunt_joined_end(sk);
	int err;

	if (!end)
		return 0;
	err = shunt_joined(end) ? shunt_drain(sk, end) : 0;
	if (err)
		return err;
	lock_sock(sk);
	if (shunt_end(sk) == end)
		shunt_clear_joined(sk, end);
	release_sock(sk);
	return 0;
}

enum shunt_ulp_wish { SHUNT_WISH_NONE, SHUNT_WISH_OURS, SHUNT_WISH_OTHER };

/* Who shall have the slot? TCP judges a name that can't be read. */
static enum shunt_ulp_wish shunt_ulp_wish(int level, int optname,
					  sockptr_t optval, unsigned int optlen)
{
	char name[TCP_ULP_NAME_MAX] = "";

	if (level != SOL_TCP || optname != TCP_ULP || !optlen ||
	    copy_from_sockptr(name, optval,
			      min_t(size_t, optlen, sizeof(name) - 1)))
		return SHUNT_WISH_NONE;
	return strcmp(name, SHUNT_NAME) ? SHUNT_WISH_OTHER : SHUNT_WISH_OURS;
}

/* Our slot outlives a disconnect; the core would say that it is taken. */
static int shunt_join_again(struct sock *sk)
{
	struct shunt_end *end;
	int err = -EEXIST;

	lock_sock(sk);
	end = shunt_end(sk);
	if (end && end->state == SHUNT_LEFT)
		err = shunt_join_self(sk);
	release_sock(sk);
	return err;
}

int shunt_setsockopt(struct sock *sk, int level, int optname,
		     sockptr_t optval, unsigned int optlen)
{
	struct proto *base = shunt_base_of(sk);
	int err;

	if (!base)
		return -EINVAL;
	switch (shunt_ulp_wish(level, optname, optval, optlen)) {
	case SHUNT_WISH_OURS:
		return shunt_join_again(sk);
	case SHUNT_WISH_OTHER:
		err = shunt_leave(sk);
		if (err)
			return err;
		break;
	case SHUNT_WISH_NONE:
		break;
	}
	return base->setsockopt(sk, level, optname, optval, optlen);
}
