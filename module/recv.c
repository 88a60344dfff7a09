// SPDX-License-Identifier: GPL-2.0
/*
 * recv.c - bytes out of the ring, or from TCP, to the application
 *
 * What holds: unread ring bytes are older than unread TCP bytes. So a reader
 * looks at TCP first, then at the ring; it takes TCP's bytes (or its error, or
 * the end of the stream) only if the ring was empty after they were seen. While
 * TCP's bytes are unread the writer can't add to the ring, so all that TCP has
 * by then may be read at once. What was read is published at the end, and lets
 * the writer back into the ring (send.c, shunt_order_ok()).
 *
 * TCP is never left to sleep on our behalf: it would not look at the ring.
 * Neighbours: wait.c sleeps, spill.c serves the readers that need real skbs.
 */
#include <linux/sched/signal.h>
#include <linux/splice.h>
#include <asm/ioctls.h>

#include "shunt.h"
#include "compat/compat.h"

struct shunt_rx {
	struct sock *sk;
	struct shunt_end *end;
	struct msghdr *msg;
	size_t len;
	int flags;
	int copied;
	bool tcp_read;		/* TCP filled in the control messages */
};

static void shunt_wake_writer(struct shunt_dir *in)
{
	if (shunt_ring_wake_producer(&in->ring))
		wake_up_interruptible_sync_poll(&in->space_wq, EPOLLOUT);
}

/*
 * rx_lock held, after a TCP read. The wish to be woken is stored first: whoever
 * uses the ring because of tcp_seen finds it (the release pairs with the
 * acquire in shunt_order_ok()). A poller may have seen TCP's bytes only.
 */
void shunt_reader_publish(struct sock *sk, struct shunt_end *end)
{
	struct shunt_dir *in = shunt_in(end);
	u32 seen = READ_ONCE(tcp_sk(sk)->copied_seq);

	if (seen == READ_ONCE(in->reader.tcp_seen))
		return;
	WRITE_ONCE(in->ring.want_data, 1);
	/* Pairs with the acquire in shunt_order_ok(). */
	smp_store_release(&in->reader.tcp_seen, seen);
	shunt_wake_writer(in);
}

static int shunt_copy_span(struct shunt_span *span, struct iov_iter *to)
{
	size_t n = span->len[0] + span->len[1], put;

	put = copy_to_iter(span->ptr[0], span->len[0], to);
	if (put == span->len[0] && span->len[1])
		put += copy_to_iter(span->ptr[1], span->len[1], to);
	if (likely(put == n))
		return 0;
	iov_iter_revert(to, put);
	return -EFAULT;
}

/* rx_lock held, the ring not empty. A bad buffer leaves the bytes there. */
static int shunt_ring_recv(struct shunt_rx *rx)
{
	struct shunt_dir *in = shunt_in(rx->end);
	u32 n = min_t(size_t, shunt_ring_used(&in->ring), rx->len - rx->copied);
	struct shunt_span span;
	int err;

	if (!(rx->flags & MSG_TRUNC)) {
		shunt_ring_read_span(&in->ring, n, &span);
		err = shunt_copy_span(&span, &rx->msg->msg_iter);
		if (err)
			return err;
	}
	if (!(rx->flags & MSG_PEEK)) {
		shunt_ring_pop(&in->ring, n);
		shunt_wake_writer(in);
	}
	return n;
}

/* rx_lock held: what TCP has now, without sleeping. */
static int shunt_tcp_recv(struct shunt_rx *rx)
{
	struct proto *base = shunt_base(rx->sk, rx->end);
	int flags = (rx->flags | MSG_DONTWAIT) & ~MSG_WAITALL;
	int n;

	n = shunt_base_recvmsg(base, rx->sk, rx->msg, rx->len - rx->copied,
			       flags);
	rx->tcp_read = true;
	shunt_reader_publish(rx->sk, rx->end);
	/* TCP has something that it won't give: never spin on it. */
	if (n == -EAGAIN && !(rx->flags & MSG_DONTWAIT))
		schedule_timeout_interruptible(1);
	return n;
}

/* A read ends before urgent data, and the next one begins with it. */
static bool shunt_at_urgent(const struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);

	return READ_ONCE(tp->urg_data) &&
	       READ_ONCE(tp->urg_seq) == READ_ONCE(tp->copied_seq);
}

/*
 * rx_lock held. Bytes read, 0 at the end of the stream, -EAGAIN if there is
 * nothing, or an error. An event with bytes already copied is left for later.
 */
static int shunt_recv_some(struct shunt_rx *rx)
{
	struct sock *sk = rx->sk;
	bool bytes = shunt_tcp_has_bytes(sk);
	bool event = shunt_tcp_has_event(sk);

	/* TCP before the ring; pairs with the writer's release of the head. */
	smp_rmb();
	if (shunt_ring_used(&shunt_in(rx->end)->ring))
		return shunt_ring_recv(rx);
	if (bytes && rx->copied && shunt_at_urgent(sk))
		return 0;
	if (bytes)
		return shunt_tcp_recv(rx);
	if (event)
		return rx->copied ? 0 : shunt_tcp_recv(rx);
	return -EAGAIN;
}

/*
 * rx_lock held on entry and return, not meanwhile. 0: look again, else why to
 * stop. Follows the order of tcp_recvmsg(): bytes, then time, then signals.
 */
static int shunt_recv_wait(struct shunt_rx *rx, int target, long *timeo)
{
	if (rx->copied >= target)
		return 1;
	if (!*timeo)
		return -EAGAIN;
	if (signal_pending(current))
		return sock_intr_errno(*timeo);
	if (!shunt_joined(rx->end))
		return -ESTALE;
	mutex_unlock(&rx->end->rx_lock);
	if (!shunt_spin_for_data(rx->sk, rx->end))
		*timeo = shunt_sleep_for_data(rx->sk, rx->end, *timeo);
	mutex_lock(&rx->end->rx_lock);
	return 0;
}

/* How many bytes can be read now: TCP_INQ, io_uring. */
static void shunt_recv_inq(struct shunt_rx *rx)
{
	struct msghdr *msg = rx->msg;
	bool cmsg = tcp_sk(rx->sk)->recvmsg_inq;

	if (!cmsg && !msg->msg_get_inq)
		return;
	msg->msg_inq = shunt_ring_peek_used(&shunt_in(rx->end)->ring) +
		       tcp_inq(rx->sk);
	/* As TCP does: the end of the stream is something to read, too. */
	if (!msg->msg_inq && sock_flag(rx->sk, SOCK_DONE))
		msg->msg_inq = 1;
	if (cmsg && !rx->tcp_read)
		put_cmsg(msg, SOL_TCP, TCP_CM_INQ, sizeof(msg->msg_inq),
			 &msg->msg_inq);
}

/*
 * rx_lock held and something is there. A peek that reaches from the ring into
 * TCP, waits for more, or starts at an offset, is TCP's to do: the ring's bytes
 * are moved there first. The writer can't pass them, so TCP may sleep.
 */
static bool shunt_peek_needs_tcp(struct shunt_rx *rx)
{
	struct shunt_dir *in = shunt_in(rx->end);
	u32 used = shunt_ring_used_now(&in->ring);

	if (!used)
		return true;
	return READ_ONCE(rx->sk->sk_peek_off) >= 0 ||
	       (used < rx->len && ((rx->flags & MSG_WAITALL) ||
				   shunt_tcp_has_bytes(rx->sk)));
}

/* rx_lock held on entry, not on return. */
static int shunt_peek(struct shunt_rx *rx, long timeo)
{
	struct shunt_end *end = rx->end;
	struct sock *sk = rx->sk;
	int ret = 0;

	while (!ret && !shunt_ring_used_now(&shunt_in(end)->ring) &&
	       !shunt_tcp_has_bytes(sk) && !shunt_tcp_has_event(sk))
		ret = shunt_recv_wait(rx, 1, &timeo);
	if (ret && ret != -ESTALE) {
		mutex_unlock(&end->rx_lock);
		return ret;
	}
	if (!shunt_peek_needs_tcp(rx)) {
		ret = shunt_ring_recv(rx);
		mutex_unlock(&end->rx_lock);
		return ret;
	}
	if (shunt_spill(sk, end)) {
		/* No memory: what the ring has is a short peek. */
		ret = shunt_ring_recv(rx);
		mutex_unlock(&end->rx_lock);
		return ret;
	}
	mutex_unlock(&end->rx_lock);
	return shunt_base_recvmsg(shunt_base(sk, end), sk, rx->msg, rx->len,
				  rx->flags);
}

static int shunt_recv(struct shunt_rx *rx)
{
	int flags = rx->flags, n, stop;
	struct shunt_end *end = rx->end;
	int target = sock_rcvlowat(rx->sk, flags & MSG_WAITALL, rx->len);
	long timeo = sock_rcvtimeo(rx->sk, flags & MSG_DONTWAIT);

	mutex_lock(&end->rx_lock);
	if (flags & MSG_PEEK)
		return shunt_peek(rx, timeo);
	do {
		n = shunt_recv_some(rx);
		if (n > 0)
			rx->copied += n;
		stop = 0;
		if (n == -EAGAIN)
			stop = shunt_recv_wait(rx, target, &timeo);
	} while ((n > 0 && rx->copied < rx->len) || (n == -EAGAIN && !stop));
	mutex_unlock(&end->rx_lock);

	if (rx->copied)
		return rx->copied;
	if (stop == -ESTALE)
		return shunt_base_recvmsg(shunt_base(rx->sk, end), rx->sk,
					  rx->msg, rx->len, flags);
	return n == -EAGAIN ? stop : n;
}

int shunt_recvmsg(struct sock *sk, struct msghdr *msg, size_t len, int flags)
{
	struct shunt_rx rx = {
		.sk = sk, .end = shunt_end(sk), .msg = msg, .len = len,
		.flags = flags,
	};
	int ret;

	if (!rx.end || !shunt_joined(rx.end) ||
	    (flags & (MSG_ERRQUEUE | MSG_OOB))) {
		struct proto *base = shunt_base(sk, rx.end);

		if (!base)
			return -EINVAL;
		return shunt_base_recvmsg(base, sk, msg, len, flags);
	}
	ret = shunt_recv(&rx);
	if (ret >= 0)
		shunt_recv_inq(&rx);
	return ret;
}

/*
 * For poll: may be read, beside what TCP has? Asks for a wake-up before it
 * looks, and whatever it finds: an edge-triggered poller wants to hear of the
 * bytes that come after these, too.
 */
bool shunt_is_readable(struct sock *sk)
{
	struct shunt_end *end = shunt_end(sk);
	struct proto *base = shunt_base(sk, end);
	u32 used, lowat;

	if (end && shunt_joined(end)) {
		shunt_ring_want_data(&shunt_in(end)->ring);
		used = shunt_ring_peek_used(&shunt_in(end)->ring);
		lowat = sock_rcvlowat(sk, 0, INT_MAX);
		if (used && (used >= lowat || used + tcp_inq(sk) >= lowat))
			return true;
	}
	return base && base->sock_is_readable && base->sock_is_readable(sk);
}

int shunt_ioctl(struct sock *sk, int cmd, int *karg)
{
	struct shunt_end *end = shunt_end(sk);
	struct proto *base = shunt_base(sk, end);
	u32 used = 0;
	int err;

	if (!base)
		return -EINVAL;
	if (end && shunt_joined(end))
		used = shunt_ring_peek_used(&shunt_in(end)->ring);
	err = base->ioctl(sk, cmd, karg);
	if (err || !used)
		return err;
	if (cmd == SIOCINQ)
		*karg += used;
	else if (cmd == SIOCATMARK)
		*karg = 0;	/* the ring's bytes come before the mark */
	return 0;
}

/*
 * rx_lock held on entry and return. 0: the ring has bytes; 1: TCP has some, or
 * news; else an error.
 */
static int shunt_splice_wait(struct shunt_rx *rx, long timeo)
{
	bool tcp;
	int ret = 0;

	while (!ret) {
		tcp = shunt_tcp_has_bytes(rx->sk) || shunt_tcp_has_event(rx->sk);
		/* TCP before the ring, as in shunt_recv_some(). */
		smp_rmb();
		if (shunt_ring_used_now(&shunt_in(rx->end)->ring))
			return 0;
		if (tcp)
			return 1;
		ret = shunt_recv_wait(rx, 1, &timeo);
	}
	return ret == -ESTALE ? 1 : ret;
}

/*
 * From the ring into fresh pages: its own are about to be written again. Only
 * as many are asked for as there are bytes.
 */
ssize_t shunt_splice_read(struct socket *sock, loff_t *ppos,
			  struct pipe_inode_info *pipe, size_t len,
			  unsigned int flags)
{
	struct sock *sk = sock->sk;
	struct shunt_end *end = shunt_end(sk);
	const struct proto_ops *base = shunt_base_ops(sock);
	struct shunt_rx rx = { .sk = sk, .end = end };
	u32 used;
	ssize_t ret;

	if (!end || !shunt_joined(end))
		return base->splice_read(sock, ppos, pipe, len, flags);
	if (*ppos)
		return -ESPIPE;
	mutex_lock(&end->rx_lock);
	ret = shunt_splice_wait(&rx, sock_rcvtimeo(sk, sock->file->f_flags &
						       O_NONBLOCK));
	used = shunt_ring_peek_used(&shunt_in(end)->ring);
	if (ret == 1) {
		ret = base->splice_read(sock, ppos, pipe, len, flags);
		shunt_reader_publish(sk, end);
		mutex_unlock(&end->rx_lock);
		return ret;
	}
	mutex_unlock(&end->rx_lock);
	if (ret)
		return ret;
	return copy_splice_read(sock->file, ppos, pipe,
				min_t(size_t, len, used), flags);
}
