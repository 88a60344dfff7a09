// SPDX-License-Identifier: GPL-2.0
/*
 * list.c - the joined connections, in /proc/tcp_shunt/pairs
 *
 * A pair is listed from its join until the first of its ends is gone; that is
 * also what the gauge "joined" counts. One line an end; see shunt_end_show()
 * for the columns. Readable by root only: it shows every namespace.
 */
#include <linux/hash.h>
#include <linux/seq_file.h>
#include <net/ipv6.h>

#include "shunt.h"

#define SHUNT_LIST_BITS	6

static struct {
	spinlock_t lock;
	struct hlist_head head;
} buckets[1 << SHUNT_LIST_BITS];

static u32 shunt_list_hash(const struct shunt_pair *pair)
{
	return hash_ptr(pair, SHUNT_LIST_BITS);
}

/* In softirq too. */
void shunt_list_add(struct shunt_pair *pair)
{
	u32 i = shunt_list_hash(pair);

	spin_lock_bh(&buckets[i].lock);
	hlist_add_head(&pair->listed, &buckets[i].head);
	pair->is_listed = true;
	spin_unlock_bh(&buckets[i].lock);
	shunt_count(joined);
}

void shunt_list_del(struct shunt_pair *pair)
{
	u32 i = shunt_list_hash(pair);

	spin_lock_bh(&buckets[i].lock);
	if (pair->is_listed) {
		hlist_del(&pair->listed);
		pair->is_listed = false;
		shunt_sub(joined, 1);
	}
	spin_unlock_bh(&buckets[i].lock);
}

static void shunt_show_v4(struct seq_file *m, __be32 addr, u16 port)
{
	seq_printf(m, " %pI4:%u", &addr, port);
}

static void shunt_show_addrs(struct seq_file *m, const struct sock *sk)
{
	u16 local = READ_ONCE(sk->sk_num), remote = ntohs(sk->sk_dport);

#if IS_ENABLED(CONFIG_IPV6)
	if (sk->sk_family == AF_INET6 &&
	    !ipv6_addr_v4mapped(&sk->sk_v6_daddr)) {
		seq_printf(m, " [%pI6c]:%u [%pI6c]:%u", &sk->sk_v6_rcv_saddr,
			   local, &sk->sk_v6_daddr, remote);
		return;
	}
#endif
	shunt_show_v4(m, sk->sk_rcv_saddr, local);
	shunt_show_v4(m, sk->sk_daddr, remote);
}

static unsigned long shunt_inode(struct sock *sk)
{
	return sk->sk_socket ? (unsigned long)sock_i_ino(sk) : 0;
}

/*
 * pair end netns inode local remote ring_bytes tcp_bytes fallback ring_size
 * spin_us: the first five of the socket, the rest of what it sends.
 */
static void shunt_end_show(struct seq_file *m, struct shunt_end *end)
{
	struct sock *sk = rcu_dereference(end->sk);

	if (!sk)
		return;
	seq_printf(m, "%x %u %u %lu", hash_ptr(end->pair, 32), end->index,
		   sock_net(sk)->ns.inum, shunt_inode(sk));
	shunt_show_addrs(m, sk);
	seq_printf(m, " %llu %llu %s %u %u\n", READ_ONCE(end->ring_bytes),
		   READ_ONCE(end->tcp_bytes),
		   shunt_fallback_name(READ_ONCE(end->last_fallback)),
		   READ_ONCE(shunt_out(end)->ring.size), end->spin_us);
}

static void *shunt_list_start(struct seq_file *m, loff_t *pos)
{
	if (*pos == 0)
		return SEQ_START_TOKEN;
	return *pos <= ARRAY_SIZE(buckets) ? &buckets[*pos - 1] : NULL;
}

static void *shunt_list_next(struct seq_file *m, void *v, loff_t *pos)
{
	++*pos;
	return shunt_list_start(m, pos);
}

static void shunt_list_stop(struct seq_file *m, void *v)
{
}

/* One bucket a step: a record that is shown whole or, if it grew, again. */
static int shunt_list_show(struct seq_file *m, void *v)
{
	typeof(&buckets[0]) bucket = v;
	struct shunt_pair *pair;

	if (v == SEQ_START_TOKEN) {
		seq_puts(m, "pair end netns inode local remote ring_bytes tcp_bytes fallback ring_size spin_us\n");
		return 0;
	}
	spin_lock_bh(&bucket->lock);
	rcu_read_lock();
	hlist_for_each_entry(pair, &bucket->head, listed) {
		shunt_end_show(m, &pair->end[0]);
		shunt_end_show(m, &pair->end[1]);
	}
	rcu_read_unlock();
	spin_unlock_bh(&bucket->lock);
	return 0;
}

static const struct seq_operations shunt_list_ops = {
	.start	= shunt_list_start,
	.next	= shunt_list_next,
	.stop	= shunt_list_stop,
	.show	= shunt_list_show,
};

int shunt_list_init(struct proc_dir_entry *dir)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(buckets); i++) {
		spin_lock_init(&buckets[i].lock);
		INIT_HLIST_HEAD(&buckets[i].head);
	}
	return proc_create_seq("pairs", 0400, dir, &shunt_list_ops) ? 0 : -ENOMEM;
}
