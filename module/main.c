// SPDX-License-Identifier: GPL-2.0
/*
 * main.c - loading and unloading, parameters, /proc/tcp_shunt
 *
 * What holds: the module can be unloaded only when no socket has our ULP (each
 * holds a reference), no BPF program calls us (so does each), and after the last
 * call into us has returned: see shunt_exit().
 */
#include <linux/log2.h>
#include <linux/module.h>
#include <linux/proc_fs.h>

#include "shunt.h"
#include "compat/compat.h"

#define pr_shunt(fmt, ...)	pr_err("tcp_shunt: " fmt, ##__VA_ARGS__)

unsigned int shunt_ring_size = 64 << 10;
struct workqueue_struct *shunt_wq;
static struct proc_dir_entry *proc_dir;

static int shunt_set_ring_size(const char *val, const struct kernel_param *kp)
{
	unsigned int size;
	int err = kstrtouint(val, 0, &size);

	if (err)
		return err;
	if (!is_power_of_2(size) || size < SHUNT_RING_MIN || size > SHUNT_RING_MAX)
		return -EINVAL;
	WRITE_ONCE(shunt_ring_size, size);
	return 0;
}

static const struct kernel_param_ops ring_size_ops = {
	.set = shunt_set_ring_size,
	.get = param_get_uint,
};
module_param_cb(ring_size, &ring_size_ops, &shunt_ring_size, 0644);
MODULE_PARM_DESC(ring_size,
		 "bytes of a ring made from now on, a power of two from 4096 to 4194304 (65536)");

static int shunt_proc_init(void)
{
	int err;

	proc_dir = proc_mkdir("tcp_shunt", NULL);
	if (!proc_dir)
		return -ENOMEM;
	err = shunt_stats_init(proc_dir);
	if (!err)
		err = shunt_list_init(proc_dir);
	if (err)
		proc_remove(proc_dir);
	return err;
}

static int __init shunt_kfunc_or_explain(void)
{
	int err = shunt_kfunc_init();

	if (err)
		pr_shunt("this kernel can't offer functions to BPF (error %d): it needs CONFIG_DEBUG_INFO_BTF, CONFIG_BPF_JIT, and a module built with BTF\n",
			 err);
	return err;
}

static int __init shunt_init(void)
{
	int err;

	err = shunt_compat_check();
	if (err)
		return err;
	err = shunt_offer_init();
	if (err)
		return err;
	err = shunt_pair_init();
	if (err)
		return err;
	shunt_wq = alloc_workqueue("shunt", WQ_UNBOUND | WQ_MEM_RECLAIM, 0);
	if (!shunt_wq) {
		err = -ENOMEM;
		goto no_wq;
	}
	err = shunt_proc_init();
	if (err)
		goto no_proc;
	err = shunt_ulp_init();
	if (err)
		goto no_ulp;
	err = shunt_kfunc_or_explain();
	if (err)
		goto no_kfunc;
	return 0;

no_kfunc:
	shunt_ulp_exit();
no_ulp:
	proc_remove(proc_dir);
no_proc:
	destroy_workqueue(shunt_wq);
no_wq:
	shunt_pair_exit();
	return err;
}

/*
 * No socket holds us, so no new call can begin. Still under way may be: a close
 * whose socket gave its reference up inside it (shunt_close_drain()), works that
 * hold a pair, RCU callbacks that free ends, and the last instructions of any of
 * these in a task that was preempted there (synchronize_rcu_tasks()).
 */
static void __exit shunt_exit(void)
{
	shunt_ulp_exit();
	shunt_offer_stop();
	shunt_close_drain();
	rcu_barrier();
	while (shunt_counter_sum(SHUNT_C_pairs_held))
		schedule_timeout_uninterruptible(1);
	destroy_workqueue(shunt_wq);
	rcu_barrier();
	shunt_tasks_barrier();
	proc_remove(proc_dir);
	shunt_protos_exit();
	shunt_pair_exit();
}

module_init(shunt_init);
module_exit(shunt_exit);

MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("Joins the two sockets of a local TCP connection by byte rings");
MODULE_VERSION(SHUNT_VERSION);
MODULE_ALIAS_TCP_ULP("shunt");
