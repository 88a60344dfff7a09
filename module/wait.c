// SPDX-License-Identifier: GPL-2.0
/*
 * wait.c - spin, sleep and wake
 *
 * A reader sleeps on its socket's own wait queue, as in TCP, so that both the
 * ring's writer and TCP's softirq wake it through sk_data_ready, and with it
 * everybody who polls. A writer sleeps on its direction's space_wq, briefly:
 * if the reader does not move, the bytes go to TCP instead (send.c).
 *
 * No lost wake-up: the sleeper is on the queue, stores its want flag, full
 * barrier, looks again; the waker stores its cursor, full barrier, looks at the
 * flag (ring.h).
 */
#include <linux/sched/signal.h>
#include <linux/sched/stat.h>

#include "shunt.h"
#include "compat/compat.h"

/* A reader that does not move for as long has stalled its writer. */
#define SHUNT_STALL_NS		(NSEC_PER_MSEC)
/* How often it waits that long for a reader that moves, but too little. */
#define SHUNT_STALL_ROUNDS	8
/* Spin iterations between two looks at the clock. */
#define SHUNT_SPIN_CLOCK	16

/* TCP's queue holds something to read, if only a FIN. */
bool shunt_tcp_has_bytes(const struct sock *sk)
{
	return !skb_queue_empty_lockless(&sk->sk_receive_queue);
}

/* TCP has an error or the end of the stream to tell. */
bool shunt_tcp_has_event(const struct sock *sk)
{
	return READ_ONCE(sk->sk_err) ||
	       (READ_ONCE(sk->sk_shutdown) & RCV_SHUTDOWN) ||
	       inet_sk_state_load(sk) == TCP_CLOSE ||
	       sock_flag(sk, SOCK_DONE);
}

static bool shunt_readable_now(const struct sock *sk, struct shunt_end *end)
{
	return shunt_ring_peek_used(&shunt_in(end)->ring) ||
	       shunt_tcp_has_bytes(sk) || shunt_tcp_has_event(sk) ||
	       !shunt_joined(end);
}

/*
 * Every byte this writer gave to TCP was read by the peer's application: the
 * condition for using the ring (invariant: unread ring bytes are older than
 * unread TCP bytes). Under tx_lock. Pairs with shunt_reader_publish().
 */
bool shunt_order_ok(const struct sock *sk, struct shunt_end *end)
{
	/* Pairs with the release in shunt_reader_publish(). */
	u32 seen = smp_load_acquire(&shunt_out(end)->reader.tcp_seen);

	return READ_ONCE(tcp_sk(sk)->write_seq) == seen;
}

void shunt_wake_reader(struct shunt_end *reader)
{
	void (*data_ready)(struct sock *sk);
	struct sock *sk;

	rcu_read_lock();
	sk = rcu_dereference(reader->sk);
	if (sk) {
		data_ready = READ_ONCE(sk->sk_data_ready);
		/* A kernel user that took the socket over reads TCP only. */
		if (data_ready == reader->data_ready)
			data_ready(sk);
	}
	rcu_read_unlock();
}

struct shunt_spin {
	u64 deadline;
	u32 us;
	u32 turns;
};

static u32 shunt_spin_budget(const struct sock *sk, const struct shunt_end *end)
{
	u32 us = end->spin_us;

#ifdef CONFIG_NET_RX_BUSY_POLL
	us = max(us, READ_ONCE(sk->sk_ll_usec));
#endif
	return min(us, SHUNT_SPIN_MAX_US);
}

/*
 * Another task on this CPU, perhaps the very peer, ends the spin at once;
 * need_resched() alone would let it wait for a tick.
 */
static bool shunt_spin_on(struct shunt_spin *spin)
{
	if (!single_task_running() || need_resched() || signal_pending(current))
		return false;
	cpu_relax();
	if (spin->turns++ % SHUNT_SPIN_CLOCK)
		return true;
	if (!spin->deadline)
		spin->deadline = ktime_get_ns() + spin->us * NSEC_PER_USEC;
	return ktime_get_ns() < spin->deadline;
}

/* Without a lock. True if there is something to read or to tell. */
bool shunt_spin_for_data(struct sock *sk, struct shunt_end *end)
{
	struct shunt_spin spin = { .us = shunt_spin_budget(sk, end) };

	if (!spin.us)
		return false;
	do {
		if (shunt_readable_now(sk, end)) {
			shunt_count(spins_hit);
			return true;
		}
	} while (shunt_spin_on(&spin));
	shunt_count(spins_miss);
	return false;
}

/* Ours, so that shunt_has_stale_waiter() can tell it from TCP's. */
static int shunt_wake_function(struct wait_queue_entry *wait, unsigned int mode,
			       int sync, void *key)
{
	return woken_wake_function(wait, mode, sync, key);
}

/*
 * Is a thread asleep in TCP's own recvmsg, or in connect()? It went to sleep
 * before the socket was joined and doesn't look at the ring.
 */
bool shunt_has_stale_waiter(struct sock *sk)
{
	wait_queue_head_t *wq = sk_sleep(sk);
	struct wait_queue_entry *entry;
	unsigned long flags;
	bool found = false;

	spin_lock_irqsave(&wq->lock, flags);
	list_for_each_entry(entry, &wq->head, entry)
		found |= entry->func == woken_wake_function;
	spin_unlock_irqrestore(&wq->lock, flags);
	return found;
}

/* Without a lock. Returns what is left of @timeo. */
long shunt_sleep_for_data(struct sock *sk, struct shunt_end *end, long timeo)
{
	DEFINE_WAIT_FUNC(wait, shunt_wake_function);

	add_wait_queue(sk_sleep(sk), &wait);
	sk_set_bit(SOCKWQ_ASYNC_WAITDATA, sk);
	shunt_ring_want_data(&shunt_in(end)->ring);
	if (!shunt_readable_now(sk, end))
		timeo = wait_woken(&wait, TASK_INTERRUPTIBLE, timeo);
	sk_clear_bit(SOCKWQ_ASYNC_WAITDATA, sk);
	remove_wait_queue(sk_sleep(sk), &wait);
	return timeo;
}

/* Where the reader stands; any progress of it changes this. */
static u32 shunt_reader_pos(const struct shunt_dir *out)
{
	return READ_ONCE(out->ring.tail) + READ_ONCE(out->reader.tcp_seen);
}

/* What a writer waits for: @want free bytes, or with 0 TCP's bytes read. */
static bool shunt_writer_may(const struct sock *sk, struct shunt_end *end,
			     u32 want)
{
	const struct shunt_dir *out = shunt_out(end);

	if (READ_ONCE(out->reader.flags) != SHUNT_R_READY ||
	    READ_ONCE(sk->sk_err) || READ_ONCE(sk->sk_shutdown) ||
	    !shunt_joined(end))
		return true;	/* the caller finds out what it is */
	if (!want)
		return shunt_order_ok(sk, end);
	return out->ring.size - shunt_ring_peek_used(&out->ring) >= want;
}

static bool shunt_spin_for_reader(struct sock *sk, struct shunt_end *end,
				  u32 want)
{
	struct shunt_spin spin = { .us = shunt_spin_budget(sk, end) };

	if (!spin.us)
		return false;
	do {
		if (shunt_writer_may(sk, end, want))
			return true;
	} while (shunt_spin_on(&spin));
	return false;
}

/* 0, -ETIME if the reader took too long, or a signal's error. */
static int shunt_wait_tick(struct sock *sk, struct shunt_end *end, u32 want)
{
	struct shunt_dir *out = shunt_out(end);

	shunt_ring_want_space(&out->ring, max(want, 1U));
	return wait_event_interruptible_hrtimeout(out->space_wq,
			shunt_writer_may(sk, end, want),
			ns_to_ktime(SHUNT_STALL_NS));
}

/*
 * A blocking writer waits for the reader: with @want, for that much space, else
 * for the bytes in TCP to be read. Called with tx_lock, which is given up
 * meanwhile. False: give the bytes to TCP, because the reader stood still, or
 * moves too little, or a signal wants attention (TCP, which has room, would not
 * have slept at all).
 */
bool shunt_wait_for_reader(struct sock *sk, struct shunt_end *end, u32 want)
{
	struct shunt_dir *out = shunt_out(end);
	u32 pos = shunt_reader_pos(out), then;
	int rounds = 0, err;

	if (end->stalled && end->stall_pos == pos)
		return false;
	end->stalled = false;
	mutex_unlock(&end->tx_lock);
	err = shunt_spin_for_reader(sk, end, want) ? 0 : -ETIME;
	while (err == -ETIME && rounds++ < SHUNT_STALL_ROUNDS) {
		then = pos;
		err = shunt_wait_tick(sk, end, want);
		pos = shunt_reader_pos(out);
		if (pos == then)
			break;
	}
	mutex_lock(&end->tx_lock);
	if (!err)
		return true;
	end->stalled = err == -ETIME;
	end->stall_pos = pos;
	return false;
}
