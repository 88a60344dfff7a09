// SPDX-License-Identifier: GPL-2.0
/*
 * spill.c - unread ring bytes become unread TCP bytes
 *
 * Some readers know skbs only: a peek across both queues, kTLS, a close that
 * has to tell the peer that data was lost. For them the ring's bytes are put
 * in front of the receive queue, and copied_seq goes back by as many: from
 * there on they are as if they had come by TCP and not been read yet. The
 * writer, which compares tcp_seen with what it gave to TCP, stays on TCP until
 * they have been.
 *
 * Locks: the caller's rx_lock, then the peer's tx_lock, so that no writer is
 * between its look at tcp_seen and its push; then the socket.
 */
#include <linux/skbuff.h>

#include "shunt.h"

/* Bytes in one skb: what fits its frags even if they are single pages. */
#define SHUNT_SPILL_SKB		(16U * PAGE_SIZE)

static int shunt_fill_skb(struct sk_buff *skb, const struct shunt_ring *ring,
			  u32 pos, u32 n)
{
	struct shunt_span span;

	shunt_ring_pieces(ring, pos, n, &span);
	if (skb_store_bits(skb, 0, span.ptr[0], span.len[0]))
		return -EFAULT;
	return skb_store_bits(skb, span.len[0], span.ptr[1], span.len[1]);
}

static struct sk_buff *shunt_spill_skb(const struct shunt_ring *ring, u32 pos,
				       u32 n, u32 seq)
{
	struct sk_buff *skb;
	int err;

	skb = alloc_skb_with_frags(0, n, 0, &err, GFP_KERNEL | __GFP_NOWARN);
	if (!skb)
		return NULL;
	skb->len = n;
	skb->data_len = n;
	if (shunt_fill_skb(skb, ring, pos, n)) {
		kfree_skb(skb);
		return NULL;
	}
	TCP_SKB_CB(skb)->seq = seq;
	TCP_SKB_CB(skb)->end_seq = seq + n;
	return skb;
}

/* The @used oldest bytes of the ring as skbs that end at @end_seq. */
static int shunt_spill_list(struct sk_buff_head *list,
			    const struct shunt_ring *ring, u32 used, u32 end_seq)
{
	struct sk_buff *skb;
	u32 done, n;

	for (done = 0; done < used; done += n) {
		n = min(used - done, SHUNT_SPILL_SKB);
		skb = shunt_spill_skb(ring, ring->tail + done, n,
				      end_seq - used + done);
		if (!skb) {
			__skb_queue_purge(list);
			return -ENOMEM;
		}
		__skb_queue_tail(list, skb);
	}
	return 0;
}

/* The socket is locked: its backlog can't move copied_seq or the queue. */
static int shunt_spill_locked(struct sock *sk, struct shunt_end *end, u32 used)
{
	struct shunt_dir *in = shunt_in(end);
	struct tcp_sock *tp = tcp_sk(sk);
	struct sk_buff_head list;
	struct sk_buff *skb;
	int err;

	__skb_queue_head_init(&list);
	err = shunt_spill_list(&list, &in->ring, used, tp->copied_seq);
	if (err)
		return err;
	skb_queue_walk(&list, skb) {
		if (sk_rmem_schedule(sk, skb, skb->truesize)) {
			skb_set_owner_r(skb, sk);
			continue;
		}
		__skb_queue_purge(&list);
		return -ENOMEM;
	}
	skb_queue_splice(&list, &sk->sk_receive_queue);
	WRITE_ONCE(tp->copied_seq, tp->copied_seq - used);
	WRITE_ONCE(in->reader.tcp_seen, tp->copied_seq);
	shunt_ring_pop(&in->ring, used);
	shunt_count(spills);
	return 0;
}

/* rx_lock held. All unread ring bytes go to the TCP queue, or none. */
int shunt_spill(struct sock *sk, struct shunt_end *end)
{
	struct shunt_end *peer = shunt_peer(end);
	int err = 0;
	u32 used;

	mutex_lock_nested(&peer->tx_lock, SINGLE_DEPTH_NESTING);
	used = shunt_ring_used_now(&shunt_in(end)->ring);
	if (used) {
		lock_sock(sk);
		err = shunt_spill_locked(sk, end, used);
		release_sock(sk);
	}
	mutex_unlock(&peer->tx_lock);
	return err;
}

/*
 * The application closes and its ring has unread bytes: one of them in the
 * queue makes TCP reset the connection, as it does for its own. No lock on the
 * writer: it was told before (SHUNT_R_CLOSED), and looks after each push.
 */
int shunt_spill_for_close(struct sock *sk, struct shunt_end *end)
{
	int err = 0;

	if (!shunt_ring_used_now(&shunt_in(end)->ring))
		return 0;
	lock_sock(sk);
	if ((1 << sk->sk_state) & (TCPF_ESTABLISHED | TCPF_CLOSE_WAIT |
				   TCPF_FIN_WAIT1 | TCPF_FIN_WAIT2))
		err = shunt_spill_locked(sk, end, 1);
	release_sock(sk);
	return err;
}
