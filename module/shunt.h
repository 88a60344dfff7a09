/* SPDX-License-Identifier: GPL-2.0 */
/*
 * shunt.h - what the files of the module share: ends, pairs, directions
 *
 * A joined connection is a pair. It has two ends, one a socket, and two
 * directions, each a ring and what its reader tells its writer. The file list
 * follows a connection's life:
 *
 *	kfunc.c    the BPF entries        offer.c   offer, identify, match, expire
 *	pair.c     ends and pairs: attach, arm, detach, free
 *	proto.c    the copies of struct proto and proto_ops, the ULP
 *	send.c     into the ring or TCP   recv.c    out of the ring or TCP
 *	wait.c     spin, sleep, wake      spill.c   ring bytes become TCP bytes
 *	close.c    shutdown, close, disconnect
 *	leave.c    back to plain TCP, alive
 *	stats.c    counters               list.c    the joined connections
 *
 * Locks, outermost first:
 *	end->rx_lock    one consumer; held while the TCP queue is read
 *	end->tx_lock    one producer; held while TCP is given bytes (the peer's
 *	                may be taken under the own rx_lock, by spill.c alone)
 *	lock_sock(sk)   TCP's own
 *	bucket->lock    the offers and the list; softirq too
 * A thread that sleeps for data or space holds none of them.
 *
 * Lifetime: an end is part of its pair and lives until its socket is destroyed
 * (the ULP's release), so a system call, which holds its file and so its
 * socket, may use the end without a reference. The pair is freed with the last
 * of its ends. An end's peer reaches end->sk under RCU only; the reference on
 * that socket is dropped one grace period after the end let go of it.
 */
#ifndef SHUNT_H
#define SHUNT_H

#include <linux/mutex.h>
#include <linux/rcupdate.h>
#include <linux/refcount.h>
#include <linux/wait.h>
#include <linux/workqueue.h>
#include <net/sock.h>
#include <net/tcp.h>

#include "ring.h"
#include "stats.h"

#define SHUNT_NAME		"shunt"
#define SHUNT_SPIN_MAX_US	10000U

struct shunt_pair;
struct sk_filter;

/* What a reader tells the writer of its direction, in reader.flags. */
enum {
	SHUNT_R_READY		= BIT(0),	/* armed: it looks at the ring */
	SHUNT_R_CLOSED		= BIT(1),	/* it will never look again */
	/* Why the writer must use TCP for now; see shunt_reader_quirks(). */
	SHUNT_R_FILTER		= BIT(2),
	SHUNT_R_TIMESTAMP	= BIT(3),
	SHUNT_R_LOWAT		= BIT(4),
	SHUNT_R_TAKEN		= BIT(5),
	SHUNT_R_REPAIR		= BIT(6),
	SHUNT_R_PEEK_OFF	= BIT(7),
	SHUNT_R_SHUTDOWN	= BIT(8),
	SHUNT_R_SIGIO		= BIT(9),
	SHUNT_R_LEFT		= BIT(10),	/* alive, but TCP's again */
};

/* One direction: the bytes from one end to the other. */
struct shunt_dir {
	struct shunt_ring ring;

	/* Written by the reader, under its rx_lock or with its socket locked. */
	struct {
		u32 flags;	/* SHUNT_R_* */
		u32 tcp_seen;	/* its copied_seq after its last TCP read */
	} reader ____cacheline_aligned;

	/* Written by the writer once it shut down, if the FIN may be lost. */
	u32 fin_seq;		/* TCP bytes before the end, as a sequence */
	bool finished;

	/* The writer that waits for space, or for the reader to read TCP. */
	wait_queue_head_t space_wq;
};

/*
 * OFFERED: has the ULP and a proto whose release_cb looks for the match.
 * JOINED:  has the whole proto. LEFT: everything goes straight to TCP.
 * Changes only with the socket locked.
 */
enum shunt_state { SHUNT_OFFERED, SHUNT_JOINED, SHUNT_LEFT };

struct shunt_protos {
	struct proto *base;		/* the socket's own */
	struct proto offered;		/* base but for release_cb */
	struct proto joined;
};

struct shunt_ops {
	const struct proto_ops *base;
	struct proto_ops joined;
};

struct shunt_end {
	struct shunt_pair *pair;
	struct sock __rcu *sk;		/* for the peer; NULL once detached */
	struct sock *held;		/* the reference behind @sk */
	const struct shunt_protos *protos;
	const struct shunt_ops *ops;	/* NULL until installed */
	void (*data_ready)(struct sock *sk);	/* as found when joining */
	u8 index;			/* in pair->end, pair->dir */
	u8 state;			/* enum shunt_state */
	u8 last_fallback;		/* enum shunt_fallback */
	u8 writer_quirk;		/* enum shunt_fallback; socket locked */
	bool closed;			/* counted in pair->nr_closed */
	bool stalled;			/* tx_lock: the reader did not move */
	u32 stall_pos;			/* tx_lock: where it stood then */
	unsigned long ring_retry;	/* tx_lock: jiffies; no ring before it */
	u32 spin_us;			/* receive spin budget, 0: the socket's */
	u32 tcp_senders;		/* tx_lock: blocked in TCP's sendmsg */
	u64 ring_bytes;			/* tx_lock: sent by ring */
	u64 tcp_bytes;			/* sent by TCP while joined */
	struct mutex tx_lock;
	struct mutex rx_lock;
	struct shunt_end *former;	/* of the same socket, before disconnect */
	struct hlist_node parked;	/* leave.c: in-flight calls may use it */
	struct sock *parked_sk;
	void (*destruct)(struct sock *sk);
	struct rcu_head rcu;
};

struct shunt_pair {
	struct shunt_dir dir[2];	/* dir[i] is written by end[i] */
	struct shunt_end end[2];	/* 0 made the offer */
	refcount_t refs;		/* one an attached end, offer, work */
	bool matched;			/* both ends are known */
	atomic_t nr_closed;		/* ends that never use a ring again */
	bool is_listed;			/* bucket lock: counted as joined */
	bool offered;			/* bucket lock: in the offer table */
	unsigned long expires;		/* jiffies; 0: never */
	u32 id_snd, id_rcv;		/* end 0's identity, see offer.c */
	struct hlist_node offer;	/* bucket lock */
	struct hlist_node listed;	/* bucket lock */
	struct delayed_work fin_work;	/* close.c: the end of the stream */
	struct work_struct attach_work;	/* offer.c: attach end 0 later */
};

extern struct tcp_ulp_ops shunt_ulp_ops;

/*
 * The end of a socket, or NULL if it has none (any more). Data before ops:
 * shunt_ulp_clear() stores them the other way round, so that another ULP's data
 * is never taken for an end by a call that began before the socket left.
 */
static inline struct shunt_end *shunt_end(const struct sock *sk)
{
	const struct inet_connection_sock *icsk = inet_csk(sk);
	void *data;

	/* sk_prot, which led here, was read before; it is stored last. */
	smp_rmb();
	data = (__force void *)READ_ONCE(icsk->icsk_ulp_data);
	/* Pairs with the second smp_wmb() in shunt_ulp_clear(). */
	smp_rmb();
	return READ_ONCE(icsk->icsk_ulp_ops) == &shunt_ulp_ops ? data : NULL;
}

static inline struct shunt_end *shunt_peer(struct shunt_end *end)
{
	return &end->pair->end[!end->index];
}

/* What @end writes, and what it reads. */
static inline struct shunt_dir *shunt_out(struct shunt_end *end)
{
	return &end->pair->dir[end->index];
}

static inline struct shunt_dir *shunt_in(struct shunt_end *end)
{
	return &end->pair->dir[!end->index];
}

static inline bool shunt_joined(const struct shunt_end *end)
{
	return READ_ONCE(end->state) == SHUNT_JOINED;
}

/* main.c */
extern unsigned int shunt_ring_size;
extern struct workqueue_struct *shunt_wq;

/* offer.c */
int shunt_offer(struct sock *sk, u32 spin_us);
int shunt_match(struct sock *sk, u32 spin_us);
int shunt_join_peer(struct sock *sk, struct sock *peer);
int shunt_join_self(struct sock *sk);
void shunt_offer_withdraw(struct shunt_pair *pair);
void shunt_offer_stop(void);
int shunt_offer_init(void);

/* pair.c */
int shunt_pair_init(void);
void shunt_pair_exit(void);
struct shunt_pair *shunt_pair_new(struct sock *sk);
void shunt_pair_get(struct shunt_pair *pair);
void shunt_pair_put(struct shunt_pair *pair);
void shunt_end_attach(struct sock *sk, struct shunt_end *end,
		      const struct shunt_protos *protos);
void shunt_end_join(struct sock *sk, struct shunt_end *end);
void shunt_end_detach(struct shunt_end *end);
void shunt_end_close(struct shunt_end *end);
void shunt_end_update(struct sock *sk, struct shunt_end *end);

/* proto.c */
const struct proto_ops *shunt_base_ops(const struct socket *sock);
const struct shunt_protos *shunt_protos_get(struct proto *base);
const struct shunt_ops *shunt_ops_get(const struct proto_ops *base);
struct proto *shunt_base(const struct sock *sk, const struct shunt_end *end);
struct proto *shunt_base_of(const struct sock *sk);
void shunt_ulp_set(struct sock *sk, struct shunt_end *end);
void shunt_ulp_clear(struct sock *sk, struct shunt_end *end);
void shunt_protos_exit(void);
int shunt_ulp_init(void);
void shunt_ulp_exit(void);

/* send.c */
int shunt_sendmsg(struct sock *sk, struct msghdr *msg, size_t size);

/* recv.c */
int shunt_recvmsg(struct sock *sk, struct msghdr *msg, size_t len, int flags);
ssize_t shunt_splice_read(struct socket *sock, loff_t *ppos,
			  struct pipe_inode_info *pipe, size_t len,
			  unsigned int flags);
bool shunt_is_readable(struct sock *sk);
int shunt_ioctl(struct sock *sk, int cmd, int *karg);
void shunt_reader_publish(struct sock *sk, struct shunt_end *end);

/* wait.c */
void shunt_wake_reader(struct shunt_end *reader);
bool shunt_spin_for_data(struct sock *sk, struct shunt_end *end);
long shunt_sleep_for_data(struct sock *sk, struct shunt_end *end, long timeo);
bool shunt_wait_for_reader(struct sock *sk, struct shunt_end *end, u32 want);
bool shunt_tcp_has_bytes(const struct sock *sk);
bool shunt_tcp_has_event(const struct sock *sk);
bool shunt_order_ok(const struct sock *sk, struct shunt_end *end);
bool shunt_has_stale_waiter(struct sock *sk);

/* spill.c */
int shunt_spill(struct sock *sk, struct shunt_end *end);
int shunt_spill_for_close(struct sock *sk, struct shunt_end *end);

/* close.c */
void shunt_close(struct sock *sk, long timeout);
int shunt_shutdown(struct socket *sock, int how);
int shunt_disconnect(struct sock *sk, int flags);
void shunt_fin_work(struct work_struct *work);
void shunt_close_drain(void);

/* leave.c */
int shunt_setsockopt(struct sock *sk, int level, int optname,
		     sockptr_t optval, unsigned int optlen);
void shunt_unoffer(struct sock *sk, struct shunt_end *end);

/* list.c */
void shunt_list_add(struct shunt_pair *pair);
void shunt_list_del(struct shunt_pair *pair);
int shunt_list_init(struct proc_dir_entry *dir);

/* kfunc_set.c */
int shunt_kfunc_init(void);

#endif
