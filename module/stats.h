/* SPDX-License-Identifier: GPL-2.0 */
/*
 * stats.h - the counters, one name each; read in /proc/tcp_shunt/stats
 *
 * Counters only grow. Gauges (marked) go back to zero when nothing is joined:
 * tests and operators read a leak from them. Every byte that a joined socket
 * sends by TCP is counted under the reason why.
 */
#ifndef SHUNT_STATS_H
#define SHUNT_STATS_H

#include <linux/percpu.h>
#include <linux/proc_fs.h>

#define SHUNT_COUNTERS(X)						\
	X(offers)		/* sockets offered for joining */	\
	X(offers_expired)	/* nobody matched them in time */	\
	X(offers_pending)	/* gauge: offers nobody matched yet */	\
	X(joins)		/* pairs made */			\
	X(joined)		/* gauge: pairs joined now */		\
	X(pairs_held)		/* gauge: pairs in memory */		\
	X(parts)		/* ends that left while alive */	\
	X(refused_state)	/* not an established plain TCP */	\
	X(refused_ulp)		/* has a ULP, or is joined already */	\
	X(refused_mptcp)						\
	X(refused_repair)						\
	X(refused_kernel)	/* a socket of the kernel's own */	\
	X(refused_user_data)	/* a kernel user holds it: sockmap, KCM, ... */ \
	X(refused_filter)	/* has a socket filter */		\
	X(refused_authenticated) /* TCP MD5 or AO */			\
	X(refused_proto)	/* a proto we can't copy */		\
	X(refused_no_offer)	/* the other end was not offered */	\
	X(refused_not_peers)	/* the two are not one connection's */	\
	X(refused_offers_full)						\
	X(refused_nomem)						\
	X(ring_bytes)		/* bytes sent through rings */		\
	X(wakeups_sent)							\
	X(wakeups_avoided)	/* the reader was not asleep */		\
	X(spins_hit)		/* spins that found data */		\
	X(spins_miss)							\
	X(spills)		/* ring bytes moved to the TCP queue */	\
	X(rings)		/* gauge */				\
	X(ring_memory)		/* gauge, bytes */

#define SHUNT_FALLBACKS(X)						\
	X(none)			/* not a fallback; never counted */	\
	X(not_ready)		/* the reader does not look yet */	\
	X(tcp_unread)		/* earlier TCP bytes are unread: order */ \
	X(ring_full)							\
	X(nomem)		/* no memory for the ring */		\
	X(oob)			/* urgent data */			\
	X(zerocopy)		/* MSG_ZEROCOPY */			\
	X(control)		/* sent with ancillary data */		\
	X(peer_closed)		/* the peer shut down reading, or closed */ \
	X(filter)		/* the reader has a socket filter */	\
	X(timestamp)		/* either end asks for timestamps */	\
	X(rcvlowat)		/* the reader set SO_RCVLOWAT */	\
	X(taken_over)		/* a kernel user reads the socket */	\
	X(repair)		/* TCP_REPAIR */			\
	X(peek_off)		/* the reader set SO_PEEK_OFF */	\
	X(sigio)		/* the reader wants a signal for each arrival */ \
	X(pacing)		/* SO_MAX_PACING_RATE */		\
	X(left)			/* the socket left the ring */

#define SHUNT_ENUM(name)	SHUNT_C_##name,
enum shunt_counter { SHUNT_COUNTERS(SHUNT_ENUM) SHUNT_NR_COUNTERS };
#undef SHUNT_ENUM

#define SHUNT_ENUM(name)	SHUNT_FB_##name,
enum shunt_fallback { SHUNT_FALLBACKS(SHUNT_ENUM) SHUNT_NR_FALLBACKS };
#undef SHUNT_ENUM

struct shunt_stats {
	u64 counter[SHUNT_NR_COUNTERS];
	u64 tcp_bytes[SHUNT_NR_FALLBACKS];
};

DECLARE_PER_CPU(struct shunt_stats, shunt_stats);

#define shunt_count(name)	this_cpu_inc(shunt_stats.counter[SHUNT_C_##name])
#define shunt_add(name, n)	this_cpu_add(shunt_stats.counter[SHUNT_C_##name], (n))
#define shunt_sub(name, n)	this_cpu_sub(shunt_stats.counter[SHUNT_C_##name], (n))

static inline void shunt_count_tcp(enum shunt_fallback why, u32 n)
{
	this_cpu_add(shunt_stats.tcp_bytes[why], n);
}

const char *shunt_fallback_name(enum shunt_fallback why);
u64 shunt_counter_sum(enum shunt_counter c);
int shunt_stats_init(struct proc_dir_entry *dir);

#endif
