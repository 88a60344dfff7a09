// SPDX-License-Identifier: GPL-2.0
/*
 * stats.c - sums the counters and shows them in /proc/tcp_shunt/stats
 *
 * Each CPU counts for itself; a gauge may be raised on one CPU and lowered on
 * another, so only the sum has a meaning. Names and what they count: stats.h.
 */
#include <linux/seq_file.h>

#include "stats.h"

DEFINE_PER_CPU(struct shunt_stats, shunt_stats);

#define SHUNT_NAME_OF(name)	#name,
static const char * const counter_names[] = { SHUNT_COUNTERS(SHUNT_NAME_OF) };
static const char * const fallback_names[] = { SHUNT_FALLBACKS(SHUNT_NAME_OF) };

const char *shunt_fallback_name(enum shunt_fallback why)
{
	return why == SHUNT_FB_none ? "-" : fallback_names[why];
}

u64 shunt_counter_sum(enum shunt_counter c)
{
	u64 sum = 0;
	int cpu;

	for_each_possible_cpu(cpu)
		sum += per_cpu(shunt_stats, cpu).counter[c];
	return sum;
}

static u64 shunt_tcp_sum(enum shunt_fallback why)
{
	u64 sum = 0;
	int cpu;

	for_each_possible_cpu(cpu)
		sum += per_cpu(shunt_stats, cpu).tcp_bytes[why];
	return sum;
}

static int shunt_stats_show(struct seq_file *m, void *v)
{
	int i;

	for (i = 0; i < SHUNT_NR_COUNTERS; i++)
		seq_printf(m, "%s %llu\n", counter_names[i], shunt_counter_sum(i));
	for (i = SHUNT_FB_none + 1; i < SHUNT_NR_FALLBACKS; i++)
		seq_printf(m, "tcp_bytes_%s %llu\n", fallback_names[i],
			   shunt_tcp_sum(i));
	return 0;
}

int shunt_stats_init(struct proc_dir_entry *dir)
{
	return proc_create_single("stats", 0444, dir, shunt_stats_show) ?
		0 : -ENOMEM;
}
