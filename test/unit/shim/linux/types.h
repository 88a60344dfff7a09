/* SPDX-License-Identifier: GPL-2.0 */
/* The kernel's integer types, for module/ring.h in userspace. */
#ifndef SHIM_TYPES_H
#define SHIM_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef uint8_t u8;
typedef uint32_t u32;
typedef uint64_t u64;

#endif
