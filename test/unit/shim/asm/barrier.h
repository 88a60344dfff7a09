/* SPDX-License-Identifier: GPL-2.0 */
#define smp_mb()		__atomic_thread_fence(__ATOMIC_SEQ_CST)
#define smp_rmb()		__atomic_thread_fence(__ATOMIC_ACQUIRE)
#define smp_wmb()		__atomic_thread_fence(__ATOMIC_RELEASE)
#define smp_load_acquire(p)	__atomic_load_n((p), __ATOMIC_ACQUIRE)

/* The positive control: what TSan must find if the ring did not release. */
#ifdef RING_WITHOUT_RELEASE
#define smp_store_release(p, v)	__atomic_store_n((p), (v), __ATOMIC_RELAXED)
#else
#define smp_store_release(p, v)	__atomic_store_n((p), (v), __ATOMIC_RELEASE)
#endif
