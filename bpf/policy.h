/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The form in which the CLI hands rules to the policy program, and in which the
 * program hands its counters back.
 *
 * Neighbours: policy.bpf.c reads rules and counts; internal/policy compiles
 * text into struct rule through the Go types generated from this file.
 */
#ifndef SHUNT_BPF_POLICY_H
#define SHUNT_BPF_POLICY_H

#define SHUNT_MAX_RULES	64

/* ACTION_NONE marks the end of the list: maps start out as zeroes. */
enum shunt_action {
	ACTION_NONE	= 0,
	ACTION_ALLOW	= 1,
	ACTION_DENY	= 2,
};

enum shunt_family {
	FAMILY_ANY	= 0,
	FAMILY_4	= 4,
	FAMILY_6	= 6,
};

/*
 * Which end of a connection must have the rule's port and address. Ends are
 * named by their role, never as "local" and "remote": both sockets of a
 * connection must come to the same answer, or neither is joined.
 */
enum shunt_end {
	END_EITHER	= 0,
	END_SERVER	= 1,
	END_CLIENT	= 2,
};

enum shunt_scope {
	SCOPE_LOOPBACK	= 0,
	SCOPE_ANY	= 1,
};

struct shunt_rule {
	__u8  action;
	__u8  family;
	__u8  end;
	__u8  scope;
	__u16 port_min;		/* 0..65535 is every port */
	__u16 port_max;
	__u32 busy_poll_us;	/* 0: the socket's own budget */
	__u32 addr[4];		/* network order; IPv4 in addr[3], rest zero */
	__u32 mask[4];		/* all zero: any address */
};

/* Slots of shunt_counter.refused, one an errno of bpf_shunt_join(). */
enum shunt_refusal {
	REFUSED_ENOENT	= 0,
	REFUSED_EEXIST	= 1,
	REFUSED_EINVAL	= 2,
	REFUSED_ENOMEM	= 3,
	REFUSED_ENOSPC	= 4,
	REFUSED_OTHER	= 5,
	REFUSED_SLOTS	= 6,
};

/*
 * One a rule, and one more, the last, for sockets that no rule matched. A
 * connection with both ends under the policy counts twice in matched, once in
 * offered (its client) and once in joined (its server).
 */
struct shunt_counter {
	__u64 matched;
	__u64 offered;
	__u64 joined;
	__u64 refused[REFUSED_SLOTS];
};

#endif
