// SPDX-License-Identifier: GPL-2.0
/*
 * close.c - shutdown, close and disconnect of a joined socket
 *
 * What holds: the end of the stream comes after every byte that was put into
 * the ring before it, because a shutdown takes tx_lock; and closing with unread
 * ring bytes resets the connection, as TCP does for its own.
 *
 * The FIN and the RST travel by TCP. Behind NAT they may be lost: traffic in
 * the ring does not refresh conntrack, and when its entry expires nothing comes
 * through in either direction. So the end of the stream travels in the pair as
 * well: a second after a FIN that the peer has not seen, fin_work does to the
 * peer what the FIN would have done.
 */
#include <linux/slab.h>

#include "shunt.h"

#define SHUNT_FIN_DELAY		HZ

/*
 * Calls inside shunt_close(). The core drops the module's reference while such
 * a call is under way, so unloading has to wait for it.
 */
static DEFINE_PER_CPU(int, closing);

void shunt_close_drain(void)
{
	int cpu, sum;

	do {
		sum = 0;
		for_each_possible_cpu(cpu)
			sum += READ_ONCE(per_cpu(closing, cpu));
		if (sum)
			schedule_timeout_uninterruptible(1);
	} while (sum);
}

/* @sk, locked, has read all TCP bytes: the FIN that didn't come is due. */
static void shunt_take_fin(struct sock *sk)
{
	if (sk->sk_shutdown & RCV_SHUTDOWN)
		return;
	WRITE_ONCE(sk->sk_shutdown, sk->sk_shutdown | RCV_SHUTDOWN);
	sock_set_flag(sk, SOCK_DONE);
	if (sk->sk_state == TCP_ESTABLISHED)
		inet_sk_set_state(sk, TCP_CLOSE_WAIT);
	if (!sock_flag(sk, SOCK_DEAD)) {
		sk->sk_state_change(sk);
		sk_wake_async(sk, SOCK_WAKE_WAITD, POLL_IN);
	}
}

static struct sock *shunt_sk_get(struct shunt_end *end)
{
	struct sock *sk;

	rcu_read_lock();
	sk = rcu_dereference(end->sk);
	if (sk)
		sock_hold(sk);
	rcu_read_unlock();
	return sk;
}

/* The pair's reference is the work's. */
void shunt_fin_work(struct work_struct *work)
{
	struct shunt_pair *pair = container_of(to_delayed_work(work),
					       struct shunt_pair, fin_work);
	int i;

	for (i = 0; i < 2; i++) {
		struct shunt_end *end = &pair->end[i];
		struct sock *sk;

		/* Pairs with the release in shunt_finish(). */
		if (!smp_load_acquire(&pair->dir[!i].finished))
			continue;
		sk = shunt_sk_get(end);
		if (!sk)
			continue;
		lock_sock(sk);
		if (shunt_end(sk) == end &&
		    tcp_sk(sk)->rcv_nxt == READ_ONCE(pair->dir[!i].fin_seq) &&
		    ((1 << sk->sk_state) & (TCPF_ESTABLISHED | TCPF_FIN_WAIT1 |
					    TCPF_FIN_WAIT2)))
			shunt_take_fin(sk);
		release_sock(sk);
		sock_put(sk);
	}
	shunt_pair_put(pair);
}

/* Did the peer hear of our end already? As good as always, on one machine. */
static bool shunt_peer_knows(struct shunt_end *end)
{
	struct sock *sk;
	bool knows = true;

	rcu_read_lock();
	sk = rcu_dereference(shunt_peer(end)->sk);
	if (sk)
		knows = READ_ONCE(sk->sk_shutdown) & RCV_SHUTDOWN ||
			inet_sk_state_load(sk) == TCP_CLOSE;
	rcu_read_unlock();
	return knows;
}

/* After TCP sent its FIN. The caller has a reference on the pair. */
static void shunt_finish(struct shunt_end *end, u32 fin_seq)
{
	struct shunt_pair *pair = end->pair;
	struct shunt_dir *out = shunt_out(end);

	if (shunt_peer_knows(end))
		return;
	WRITE_ONCE(out->fin_seq, fin_seq);
	/* Pairs with the acquire in shunt_fin_work(). */
	smp_store_release(&out->finished, true);
	shunt_pair_get(pair);
	if (!queue_delayed_work(shunt_wq, &pair->fin_work, SHUNT_FIN_DELAY))
		shunt_pair_put(pair);
}

/* Reached by the proto_ops, without the socket's lock; hence tx_lock here. */
int shunt_shutdown(struct socket *sock, int how)
{
	const struct proto_ops *base = shunt_base_ops(sock);
	struct sock *sk = sock->sk;
	struct shunt_end *end = shunt_end(sk);
	u32 fin_seq;
	int err;

	if (!end || !shunt_joined(end) || how == SHUT_RD)
		return base->shutdown(sock, how);
	mutex_lock(&end->tx_lock);
	fin_seq = READ_ONCE(tcp_sk(sk)->write_seq);
	err = base->shutdown(sock, how);
	mutex_unlock(&end->tx_lock);
	if (!err)
		shunt_finish(end, fin_seq);
	return err;
}

/* Tells the writer, then looks for what it wrote before it knew. */
static void shunt_close_reader(struct sock *sk, struct shunt_end *end)
{
	struct shunt_dir *in = shunt_in(end);

	lock_sock(sk);
	WRITE_ONCE(in->reader.flags, READ_ONCE(in->reader.flags) |
				     SHUNT_R_CLOSED);
	release_sock(sk);
	/* Pairs with the barrier before shunt_closed_meanwhile(). */
	smp_mb();
	if (shunt_spill_for_close(sk, end)) {
		/* No memory even for one byte: a reset by another road. */
		lock_sock(sk);
		sock_set_flag(sk, SOCK_LINGER);
		sk->sk_lingertime = 0;
		release_sock(sk);
	}
	wake_up_all(&in->space_wq);
}

/* The last reference on the file is gone: nobody else calls into the end. */
void shunt_close(struct sock *sk, long timeout)
{
	struct shunt_end *end = shunt_end(sk);
	struct proto *base = shunt_base(sk, end);
	struct shunt_pair *pair = NULL;
	u32 fin_seq = 0;

	this_cpu_inc(closing);
	if (end && shunt_joined(end)) {
		pair = end->pair;
		shunt_pair_get(pair);
		shunt_close_reader(sk, end);
		fin_seq = READ_ONCE(tcp_sk(sk)->write_seq);
	}
	if (base)
		base->close(sk, timeout);
	if (pair) {
		shunt_finish(end, fin_seq);
		shunt_end_close(end);
		shunt_pair_put(pair);
	}
	this_cpu_dec(closing);
}

/*
 * The socket is locked. TCP drops what is unread and tells the peer with a
 * reset. The ULP stays, idle: other threads may be inside our calls. The next
 * connection of this socket gets a new end (offer.c).
 */
int shunt_disconnect(struct sock *sk, int flags)
{
	struct shunt_end *end = shunt_end(sk);
	struct proto *base = shunt_base(sk, end);
	struct shunt_dir *in;

	if (!base)
		return -EINVAL;
	if (end && READ_ONCE(end->state) != SHUNT_LEFT) {
		in = shunt_in(end);
		shunt_offer_withdraw(end->pair);
		shunt_list_del(end->pair);
		WRITE_ONCE(end->state, SHUNT_LEFT);
		WRITE_ONCE(in->reader.flags, SHUNT_R_CLOSED);
		if (sk->sk_socket)
			WRITE_ONCE(sk->sk_socket->ops,
				   shunt_base_ops(sk->sk_socket));
		wake_up_all(&in->space_wq);
	}
	return base->disconnect(sk, flags);
}
