// SPDX-License-Identifier: GPL-2.0

// Processes by socket inode, found through the links in /proc/PID/fd. One pass
// finds them all. A socket shared by several processes belongs to the first
// one found, and is marked so.

package proc

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Owner is a process that holds a socket.
type Owner struct {
	PID    int
	Name   string
	Shared bool // other processes hold it as well
}

func (o Owner) String() string {
	if o.Shared {
		return fmt.Sprintf("%s/%d+", o.Name, o.PID)
	}
	return fmt.Sprintf("%s/%d", o.Name, o.PID)
}

// Owners finds who holds the sockets of these inodes, under a proc folder.
func Owners(root string, inodes map[uint64]bool) map[uint64]Owner {
	owners := map[uint64]Owner{}
	if len(inodes) == 0 {
		return owners
	}
	entries, _ := os.ReadDir(root)
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		scanProcess(root, pid, inodes, owners)
	}
	return owners
}

func scanProcess(root string, pid int, inodes map[uint64]bool, owners map[uint64]Owner) {
	base := filepath.Join(root, strconv.Itoa(pid))
	fds, err := os.ReadDir(filepath.Join(base, "fd"))
	if err != nil {
		return // gone, or not ours to see
	}
	for _, fd := range fds {
		target, err := os.Readlink(filepath.Join(base, "fd", fd.Name()))
		inode, ok := socketInode(target)
		if err != nil || !ok || !inodes[inode] {
			continue
		}
		owner, known := owners[inode]
		if !known {
			owner = Owner{PID: pid, Name: commandName(base)}
		} else if owner.PID != pid {
			owner.Shared = true
		}
		owners[inode] = owner
	}
}

func socketInode(target string) (uint64, bool) {
	text, ok := strings.CutPrefix(target, "socket:[")
	if !ok {
		return 0, false
	}
	n, err := strconv.ParseUint(strings.TrimSuffix(text, "]"), 10, 64)
	return n, err == nil
}

func commandName(base string) string {
	b, err := os.ReadFile(filepath.Join(base, "comm"))
	if err != nil {
		return "?"
	}
	return strings.TrimSpace(string(b))
}
