// SPDX-License-Identifier: GPL-2.0
/*
 * send.c - bytes from the application into the ring, or to TCP
 *
 * What holds: a byte goes into the ring only while every byte that was ever
 * given to TCP has been read by the peer's application (shunt_order_ok()), and
 * only if the peer is known to look (SHUNT_R_READY and nothing else in the
 * reader's flags). Everything else goes to TCP, with a reason that is counted.
 * A message of up to half a ring is never split between two sleeps, so
 * messages of several threads don't mix where they wouldn't on TCP.
 *
 * Blocking for TCP's memory is left to TCP: end->tcp_senders keeps the ring
 * closed meanwhile, and tx_lock free. Neighbours: ring.h, wait.c, recv.c.
 */
#include <linux/gfp.h>
#include <linux/mm.h>

#include "shunt.h"

/* What a blocking writer gives to TCP before it tries the ring again, bytes. */
#define SHUNT_TCP_PIECE		(256U << 10)

struct shunt_tx {
	struct sock *sk;
	struct shunt_end *end;
	struct msghdr *msg;
	int flags;		/* as the caller gave them */
	bool may_wait;
	int sent;
};

/*
 * Contiguous pages: no page tables to walk, and one charge that is made or not
 * made, to the writer's memory cgroup. No retry and no OOM kill: where memory
 * is short the ring is smaller, or there is none and the bytes use TCP.
 */
static u8 *shunt_ring_pages(u32 *size)
{
	gfp_t gfp = GFP_KERNEL_ACCOUNT | __GFP_COMP | __GFP_NOWARN |
		    __GFP_NORETRY;
	unsigned long pages;

	for (; *size >= SHUNT_RING_MIN; *size /= 2) {
		pages = __get_free_pages(gfp, get_order(*size));
		if (pages)
			return (u8 *)pages;
	}
	return NULL;
}

/* tx_lock held. After a failure the next try is a second away. */
static bool shunt_ring_alloc(struct shunt_end *end, struct shunt_ring *ring)
{
	u32 size = READ_ONCE(shunt_ring_size);
	u8 *buf;

	if (end->ring_retry && time_before(jiffies, end->ring_retry))
		return false;
	buf = shunt_ring_pages(&size);
	if (!buf) {
		end->ring_retry = (jiffies + HZ) | 1;
		return false;
	}
	shunt_ring_attach(ring, buf, size);
	shunt_count(rings);
	shunt_add(ring_memory, size);
	return true;
}

static enum shunt_fallback shunt_reader_reason(u32 flags)
{
	if (flags & (SHUNT_R_CLOSED | SHUNT_R_SHUTDOWN))
		return SHUNT_FB_peer_closed;
	if (flags & SHUNT_R_LEFT)
		return SHUNT_FB_left;
	if (!(flags & SHUNT_R_READY))
		return SHUNT_FB_not_ready;
	if (flags & SHUNT_R_FILTER)
		return SHUNT_FB_filter;
	if (flags & SHUNT_R_TIMESTAMP)
		return SHUNT_FB_timestamp;
	if (flags & SHUNT_R_LOWAT)
		return SHUNT_FB_rcvlowat;
	if (flags & SHUNT_R_TAKEN)
		return SHUNT_FB_taken_over;
	if (flags & SHUNT_R_REPAIR)
		return SHUNT_FB_repair;
	if (flags & SHUNT_R_SIGIO)
		return SHUNT_FB_sigio;
	return SHUNT_FB_peek_off;
}

/* tx_lock held: may this writer use the ring now, and if not, why? */
static enum shunt_fallback shunt_tx_reason(struct sock *sk,
					   struct shunt_end *end)
{
	struct shunt_dir *out = shunt_out(end);
	u32 flags = READ_ONCE(out->reader.flags);

	if (!shunt_joined(end))
		return SHUNT_FB_left;
	/* TCP reports these, the way it does. */
	if (READ_ONCE(sk->sk_err) || (READ_ONCE(sk->sk_shutdown) & SEND_SHUTDOWN))
		return SHUNT_FB_peer_closed;
	if (flags != SHUNT_R_READY)
		return shunt_reader_reason(flags);
	if (READ_ONCE(end->writer_quirk) != SHUNT_FB_none)
		return READ_ONCE(end->writer_quirk);
	if (!out->ring.size && !shunt_ring_alloc(end, &out->ring))
		return SHUNT_FB_nomem;
	if (end->tcp_senders || !shunt_order_ok(sk, end))
		return SHUNT_FB_tcp_unread;
	return SHUNT_FB_none;
}

/* Copies @n bytes in, all or none: a message with a bad page is not sent. */
static int shunt_ring_fill(struct shunt_ring *ring, struct iov_iter *from, u32 n)
{
	struct shunt_span span;
	size_t got;

	shunt_ring_write_span(ring, n, &span);
	got = copy_from_iter(span.ptr[0], span.len[0], from);
	if (got == span.len[0] && span.len[1])
		got += copy_from_iter(span.ptr[1], span.len[1], from);
	if (likely(got == n))
		return 0;
	iov_iter_revert(from, got);
	return -EFAULT;
}

/*
 * The reader closed for good while we wrote. It set the flag, then looked at
 * the ring; we moved the head, then look at the flag (the barrier is in
 * shunt_ring_wake_consumer()). So it saw these bytes, or we see the flag; then
 * they go to TCP, which answers as to any byte for a closed socket.
 */
static bool shunt_closed_meanwhile(const struct shunt_dir *out)
{
	return READ_ONCE(out->reader.flags) & SHUNT_R_CLOSED;
}

/* tx_lock held. Bytes put into the ring, 0 if there is no room, or -EFAULT. */
static int shunt_ring_send(struct shunt_tx *tx)
{
	struct shunt_dir *out = shunt_out(tx->end);
	struct shunt_ring *ring = &out->ring;
	size_t left = msg_data_left(tx->msg);
	u32 need = min_t(size_t, left, ring->size / 2);
	u32 n = shunt_ring_space(ring, need);
	int err;

	if (n < need)
		return 0;
	n = min_t(size_t, n, left);
	err = shunt_ring_fill(ring, &tx->msg->msg_iter, n);
	if (err)
		return err;
	shunt_ring_push(ring, n);
	if (shunt_ring_wake_consumer(ring)) {
		shunt_count(wakeups_sent);
		shunt_wake_reader(shunt_peer(tx->end));
	} else {
		shunt_count(wakeups_avoided);
	}
	if (unlikely(shunt_closed_meanwhile(out))) {
		iov_iter_revert(&tx->msg->msg_iter, n);
		return 0;
	}
	tx->end->ring_bytes += n;
	shunt_add(ring_bytes, n);
	return n;
}

/* tx_lock held. Sends what it can by ring; says why the rest must use TCP. */
static enum shunt_fallback shunt_send_by_ring(struct shunt_tx *tx, int *err)
{
	struct shunt_ring *ring = &shunt_out(tx->end)->ring;
	enum shunt_fallback why;
	int n;

	while (msg_data_left(tx->msg)) {
		why = shunt_tx_reason(tx->sk, tx->end);
		if (why == SHUNT_FB_tcp_unread && tx->may_wait &&
		    !tx->end->tcp_senders &&
		    shunt_wait_for_reader(tx->sk, tx->end, 0))
			continue;
		if (why != SHUNT_FB_none)
			return why;
		n = shunt_ring_send(tx);
		if (n < 0) {
			*err = n;
			return SHUNT_FB_none;
		}
		tx->sent += n;
		/* Half a ring, so that the reader wakes us seldom. */
		if (!n && !(tx->may_wait &&
			    shunt_wait_for_reader(tx->sk, tx->end,
						  ring->size / 2)))
			return SHUNT_FB_ring_full;
	}
	return SHUNT_FB_none;
}

static void shunt_tcp_sent(struct shunt_end *end, enum shunt_fallback why, int n)
{
	if (n <= 0)
		return;
	WRITE_ONCE(end->last_fallback, why);
	WRITE_ONCE(end->tcp_bytes, end->tcp_bytes + n);
	shunt_count_tcp(why, n);
}

/* At most @most bytes of what is left, with @flags. */
static int shunt_tcp_sendmsg(struct shunt_tx *tx, enum shunt_fallback why,
			     int flags, size_t most)
{
	struct proto *base = shunt_base(tx->sk, tx->end);
	struct iov_iter *iter = &tx->msg->msg_iter;
	size_t left = iov_iter_count(iter), held;
	int n;

	held = left > most ? left - most : 0;
	iov_iter_truncate(iter, left - held);
	tx->msg->msg_flags = held ? flags | MSG_MORE : flags;
	n = base->sendmsg(tx->sk, tx->msg, left - held);
	tx->msg->msg_flags = tx->flags;
	iov_iter_reexpand(iter, iov_iter_count(iter) + held);
	shunt_tcp_sent(tx->end, why, n);
	return n;
}

/* TCP may sleep: others get tx_lock, but not the ring, until it is done. */
static int shunt_tcp_send_blocking(struct shunt_tx *tx, enum shunt_fallback why,
				   int flags, size_t most)
{
	int n;

	tx->end->tcp_senders++;
	mutex_unlock(&tx->end->tx_lock);
	n = shunt_tcp_sendmsg(tx, why, flags, most);
	mutex_lock(&tx->end->tx_lock);
	tx->end->tcp_senders--;
	return n;
}

/*
 * TCP told this call of the socket's error, and so forgot it. The call returns
 * what it has sent; the error is for the next.
 */
static void shunt_keep_error(const struct shunt_tx *tx, int err)
{
	if (!tx->sent || inet_sk_state_load(tx->sk) != TCP_CLOSE)
		return;
	lock_sock(tx->sk);
	if ((err == -ECONNRESET || err == -ETIMEDOUT || err == -ECONNABORTED ||
	     err == -EHOSTUNREACH || err == -ENETUNREACH) && !tx->sk->sk_err)
		WRITE_ONCE(tx->sk->sk_err, -err);
	release_sock(tx->sk);
}

/*
 * tx_lock held. The next bytes of the message go to TCP, at first without
 * sleeping so that no other thread's come between. Of a long message it is one
 * piece, so that a writer whose reader catches up gets back into the ring. What
 * TCP took is added to tx->sent; 0, or an error that ends the call. A call that
 * has sent something returns that; the error waits for the next, as in TCP.
 */
static int shunt_send_by_tcp(struct shunt_tx *tx, enum shunt_fallback why)
{
	size_t left = msg_data_left(tx->msg), most = left;
	int flags = tx->flags, n;

	if (tx->may_wait)
		most = min_t(size_t, left, SHUNT_TCP_PIECE);
	if (tx->sent) {
		if (READ_ONCE(tx->sk->sk_err) ||
		    (READ_ONCE(tx->sk->sk_shutdown) & SEND_SHUTDOWN))
			return -EPIPE;
		flags |= MSG_NOSIGNAL;
	}
	n = shunt_tcp_sendmsg(tx, why, flags | MSG_DONTWAIT, most);
	if (n > 0) {
		tx->sent += n;
		most -= n;
		flags |= MSG_NOSIGNAL;
	}
	if (n < 0)
		shunt_keep_error(tx, n);
	if (!most || (n < 0 && (n != -EAGAIN || !tx->may_wait)))
		return min(n, 0);
	if (!tx->may_wait)
		return -EAGAIN;
	n = shunt_tcp_send_blocking(tx, why, flags, most);
	if (n < 0) {
		shunt_keep_error(tx, n);
		return n;
	}
	tx->sent += n;
	return n == most ? 0 : -EAGAIN;
}

/* A reader that asked for more than one byte at a time counts both queues. */
static void shunt_nudge_lowat_reader(struct shunt_end *end)
{
	struct shunt_dir *out = shunt_out(end);

	if ((READ_ONCE(out->reader.flags) & SHUNT_R_LOWAT) &&
	    shunt_ring_peek_used(&out->ring))
		shunt_wake_reader(shunt_peer(end));
}

/* What only TCP can carry: the whole message goes there in one call. */
static enum shunt_fallback shunt_msg_reason(const struct msghdr *msg)
{
	if (msg->msg_flags & MSG_OOB)
		return SHUNT_FB_oob;
	if (msg->msg_flags & MSG_ZEROCOPY)
		return SHUNT_FB_zerocopy;
	if (msg->msg_controllen)
		return SHUNT_FB_control;
	return SHUNT_FB_none;
}

int shunt_sendmsg(struct sock *sk, struct msghdr *msg, size_t size)
{
	struct shunt_end *end = shunt_end(sk);
	struct shunt_tx tx = {
		.sk = sk, .end = end, .msg = msg, .flags = msg->msg_flags,
	};
	enum shunt_fallback why;
	int err = 0;

	if (!end || !size || !shunt_joined(end)) {
		struct proto *base = shunt_base(sk, end);

		return base ? base->sendmsg(sk, msg, size) : -EINVAL;
	}
	tx.may_wait = sock_sndtimeo(sk, msg->msg_flags & MSG_DONTWAIT) != 0;

	mutex_lock(&end->tx_lock);
	why = shunt_msg_reason(msg);
	if (unlikely(why)) {
		err = shunt_tcp_send_blocking(&tx, why, tx.flags, size);
		goto unlock;
	}
	do {
		why = shunt_send_by_ring(&tx, &err);
		if (why)
			err = shunt_send_by_tcp(&tx, why);
	} while (!err && msg_data_left(msg));
	if (unlikely(why == SHUNT_FB_rcvlowat))
		shunt_nudge_lowat_reader(end);
	if (tx.sent)
		err = tx.sent;
unlock:
	mutex_unlock(&end->tx_lock);
	return err;
}
