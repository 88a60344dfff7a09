// SPDX-License-Identifier: GPL-2.0

// Package bpfstate puts a policy in place, reads it back and takes it away.
//
// The only lasting state is one pinned BPF link a cgroup, in Dir. A link keeps
// its program alive and the program its maps, so rules and counters are found
// from the link: there is nothing else that could disagree with it, and nothing
// has to stay running.
//
//	lock.go    one command at a time changes the state
//	load.go    the program with its rules, not attached yet
//	apply.go   attach, replace, detach
//	read.go    what is in place, with counters
//	pins.go    the pinned links
//
// Neighbours: bpf/policy.bpf.c (the program), internal/policy (rules),
// internal/cgroup (where it is attached).
package bpfstate

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Dir holds the pinned links.
const Dir = bpffs + "/shunt"

const bpffs = "/sys/fs/bpf"

// CheckBpffs tells what is missing where links could not be pinned.
func CheckBpffs() error {
	var fs unix.Statfs_t
	if unix.Statfs(bpffs, &fs) == nil && fs.Type == unix.BPF_FS_MAGIC {
		return nil
	}
	return fmt.Errorf("the BPF file system is not mounted: mount -t bpf bpf %s", bpffs)
}

// Exists tells whether the folder of pins is there, links in it or not.
func Exists() bool {
	_, err := os.Stat(Dir)
	return err == nil
}
