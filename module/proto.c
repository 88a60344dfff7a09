// SPDX-License-Identifier: GPL-2.0
/*
 * proto.c - how the module stands in a socket: ULP slot, proto, proto_ops
 *
 * A socket's struct proto is swapped for a copy of its own (tcp_prot,
 * tcpv6_prot and sockmap's differ), so that TCP is reached through what was
 * there before and no unexported symbol is needed. One copy serves all sockets
 * of the same proto; it is made on first use and kept until unload.
 * Neighbours: pair.c puts the copies in, send.c, recv.c and close.c are what
 * they point at.
 */
#include <linux/slab.h>
#include <net/inet_common.h>

#include "shunt.h"
#include "compat/compat.h"

/* tcp, tcpv6 and for each sockmap's four, with room to spare. */
#define SHUNT_MAX_PROTOS	16

static struct shunt_protos *protos[SHUNT_MAX_PROTOS];
static struct shunt_ops *ops[SHUNT_MAX_PROTOS];
static DEFINE_SPINLOCK(copies_lock);	/* adding to both tables */

/* Runs at the end of every locked section, before the lock is given up. */
static void shunt_release_cb(struct sock *sk)
{
	struct shunt_end *end = shunt_end(sk);
	struct proto *base = shunt_base(sk, end);

	if (base && base->release_cb)
		base->release_cb(sk);
	if (end)
		shunt_end_update(sk, end);
}

static void shunt_make_joined(struct proto *prot)
{
	prot->close = shunt_close;
	prot->disconnect = shunt_disconnect;
	prot->setsockopt = shunt_setsockopt;
	prot->ioctl = shunt_ioctl;
	prot->sendmsg = shunt_sendmsg;
	prot->recvmsg = SHUNT_RECVMSG;
	prot->sock_is_readable = shunt_is_readable;
	prot->release_cb = shunt_release_cb;
}

static void shunt_make_offered(struct proto *prot)
{
	prot->disconnect = shunt_disconnect;
	prot->setsockopt = shunt_setsockopt;
	prot->release_cb = shunt_release_cb;
}

static struct shunt_protos *shunt_protos_make(struct proto *base)
{
	struct shunt_protos *p = kmalloc(sizeof(*p), GFP_ATOMIC);

	if (!p)
		return NULL;
	p->base = base;
	p->offered = *base;
	p->joined = *base;
	shunt_make_offered(&p->offered);
	shunt_make_joined(&p->joined);
	return p;
}

static struct shunt_ops *shunt_ops_make(const struct proto_ops *base)
{
	struct shunt_ops *o = kmalloc(sizeof(*o), GFP_ATOMIC);

	if (!o)
		return NULL;
	o->base = base;
	o->joined = *base;
	o->joined.splice_read = shunt_splice_read;
	o->joined.shutdown = shunt_shutdown;
	return o;
}

/* Finds or makes the entry of @key; entries are never changed or removed. */
#define SHUNT_FIND_OR_MAKE(table, key, make) ({				\
	typeof((table)[0]) found = NULL;				\
	int i;								\
									\
	for (i = 0; i < SHUNT_MAX_PROTOS; i++) {			\
		/* Pairs with the release below: an entry and its content. */ \
		found = smp_load_acquire(&(table)[i]);			\
		if (!found || found->base == (key))			\
			break;						\
	}								\
	if (!found && i < SHUNT_MAX_PROTOS) {				\
		spin_lock_bh(&copies_lock);				\
		while (i < SHUNT_MAX_PROTOS && (table)[i] &&		\
		       (table)[i]->base != (key))			\
			i++;						\
		if (i < SHUNT_MAX_PROTOS) {				\
			found = (table)[i];				\
			if (!found) {					\
				found = make(key);			\
				/* Pairs with the acquire above. */	\
				smp_store_release(&(table)[i], found);	\
			}						\
		}							\
		spin_unlock_bh(&copies_lock);				\
	} else if (i == SHUNT_MAX_PROTOS) {				\
		found = NULL;						\
	}								\
	found;								\
})

const struct shunt_protos *shunt_protos_get(struct proto *base)
{
	return SHUNT_FIND_OR_MAKE(protos, base, shunt_protos_make);
}

const struct shunt_ops *shunt_ops_get(const struct proto_ops *base)
{
	return SHUNT_FIND_OR_MAKE(ops, base, shunt_ops_make);
}

/* What lies below our proto_ops, or the socket's own if it has none of ours. */
const struct proto_ops *shunt_base_ops(const struct socket *sock)
{
	const struct proto_ops *now = READ_ONCE(sock->ops);

	if (now->splice_read != shunt_splice_read)
		return now;
	return container_of(now, struct shunt_ops, joined)->base;
}

/* Only after the last socket and the last call into a copy. */
void shunt_protos_exit(void)
{
	int i;

	for (i = 0; i < SHUNT_MAX_PROTOS; i++) {
		kfree(protos[i]);
		kfree(ops[i]);
	}
}

/*
 * The proto below ours. A call that began before the socket left finds no end
 * any more; then the socket's proto is whatever took our place.
 */
struct proto *shunt_base(const struct sock *sk, const struct shunt_end *end)
{
	const struct shunt_protos *p;
	struct proto *prot;

	if (likely(end)) {
		p = READ_ONCE(end->protos);
		return p->base;
	}
	/* Pairs with shunt_ulp_clear(): sk_prot first, then the slot. */
	smp_rmb();
	prot = READ_ONCE(sk->sk_prot);
	if (WARN_ON_ONCE(prot->release_cb == shunt_release_cb))
		return NULL;
	return prot;
}

/* The same where the end may be taken away meanwhile: an unmatched offer's. */
struct proto *shunt_base_of(const struct sock *sk)
{
	struct proto *base;

	rcu_read_lock();
	base = shunt_base(sk, shunt_end(sk));
	rcu_read_unlock();
	return base;
}

/*
 * Takes the ULP slot of a socket that is locked and has none. The ULP core
 * does the same after ->init(); a BPF program can't go that way. The caller
 * holds the module reference that goes with the slot.
 */
void shunt_ulp_set(struct sock *sk, struct shunt_end *end)
{
	struct inet_connection_sock *icsk = inet_csk(sk);

	rcu_assign_pointer(icsk->icsk_ulp_data, end);
	/* Pairs with shunt_end(): who sees our ops sees our data. */
	smp_wmb();
	WRITE_ONCE(icsk->icsk_ulp_ops, &shunt_ulp_ops);
}

/* Gives the slot and the proto back; the module reference is the caller's. */
void shunt_ulp_clear(struct sock *sk, struct shunt_end *end)
{
	struct inet_connection_sock *icsk = inet_csk(sk);
	struct socket *sock = sk->sk_socket;

	WRITE_ONCE(sk->sk_prot, end->protos->base);
	if (sock && end->ops)
		WRITE_ONCE(sock->ops, end->ops->base);
	/* Pairs with shunt_base(). */
	smp_wmb();
	WRITE_ONCE(icsk->icsk_ulp_ops, NULL);
	/* Pairs with shunt_end(): ops go before the data of another ULP comes. */
	smp_wmb();
	rcu_assign_pointer(icsk->icsk_ulp_data, NULL);
}

static int shunt_ulp_init_sock(struct sock *sk)
{
	return shunt_join_self(sk);
}

/* sockmap leaves the socket: what lies below us becomes @p. */
static void shunt_ulp_update(struct sock *sk, struct proto *p,
			     void (*write_space)(struct sock *sk))
{
	struct shunt_end *end = shunt_end(sk);
	const struct shunt_protos *next = shunt_protos_get(p);
	struct proto *prot = sk->sk_prot;

	WRITE_ONCE(sk->sk_write_space, write_space);
	/* sockmap wrote its saved unhash into our shared copy: undo that. */
	WRITE_ONCE(prot->unhash, end->protos->base->unhash);
	if (!next) {
		/* No memory for a copy: TCP from here on. */
		WRITE_ONCE(end->state, SHUNT_LEFT);
		return;
	}
	prot = prot == &end->protos->joined ? (struct proto *)&next->joined :
					      (struct proto *)&next->offered;
	WRITE_ONCE(end->protos, next);
	WRITE_ONCE(sk->sk_prot, prot);
}

/* The socket is being destroyed; softirq or process, nobody else uses it. */
static void shunt_ulp_release(struct sock *sk)
{
	struct shunt_end *end = shunt_end(sk), *former;

	/* The core drops our module reference before it is done with sk_prot. */
	WRITE_ONCE(sk->sk_prot, end->protos->base);
	rcu_assign_pointer(inet_csk(sk)->icsk_ulp_data, NULL);
	while (end) {
		former = end->former;
		shunt_end_detach(end);
		end = former;
	}
}

/* A joined socket that was disconnected may listen; its children are plain. */
static void shunt_ulp_clone(const struct request_sock *req, struct sock *newsk,
			    const gfp_t priority)
{
	struct inet_connection_sock *icsk = inet_csk(newsk);
	struct shunt_end *end = (__force struct shunt_end *)icsk->icsk_ulp_data;

	WRITE_ONCE(newsk->sk_prot, end->protos->base);
	icsk->icsk_ulp_ops = NULL;
	RCU_INIT_POINTER(icsk->icsk_ulp_data, NULL);
}

struct tcp_ulp_ops shunt_ulp_ops = {
	.name		= SHUNT_NAME,
	.owner		= THIS_MODULE,
	.init		= shunt_ulp_init_sock,
	.update		= shunt_ulp_update,
	.release	= shunt_ulp_release,
	.clone		= shunt_ulp_clone,
};

int shunt_ulp_init(void)
{
	return tcp_register_ulp(&shunt_ulp_ops);
}

void shunt_ulp_exit(void)
{
	tcp_unregister_ulp(&shunt_ulp_ops);
}
