/* SPDX-License-Identifier: GPL-2.0 */
#define ____cacheline_aligned __attribute__((aligned(64)))
