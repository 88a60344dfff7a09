// SPDX-License-Identifier: GPL-2.0

// One command at a time changes the state. The lock is on the BPF file
// system's own folder, so that no lock file is left behind.

package bpfstate

import (
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

const lockPatience = 10 * time.Second

// Lock waits a while for other commands and returns the function that unlocks.
func Lock() (func(), error) {
	f, err := os.Open(bpffs)
	if err != nil {
		return nil, err
	}
	deadline := time.Now().Add(lockPatience)
	for {
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return func() { f.Close() }, nil
		}
		if err != unix.EWOULDBLOCK && err != unix.EINTR {
			break
		}
		if time.Now().After(deadline) {
			err = fmt.Errorf("another shunt command is still changing the policy: try again when it is done")
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	f.Close()
	return nil, err
}
