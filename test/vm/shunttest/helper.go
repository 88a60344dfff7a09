// SPDX-License-Identifier: GPL-2.0

// Processes that a test needs beside itself: the same program started again
// with -helper. A socket is handed over as file 3. Neighbours: kill.go and
// share.go, which start them.
package main

import (
	"fmt"
	"os"
	"os/exec"
	"time"

	"golang.org/x/sys/unix"
)

var helpers = map[string]func(fd int, args []string) error{
	"send-forever": func(fd int, _ []string) error {
		b := pattern(9, 16384)
		for {
			if err := writeAll(fd, b); err != nil {
				return err
			}
		}
	},
	"read-slowly": func(fd int, _ []string) error {
		b := make([]byte, 1000)
		for {
			if n, err := unix.Read(fd, b); err != nil || n == 0 {
				return err
			}
			time.Sleep(time.Millisecond)
		}
	},
	"echo": func(fd int, _ []string) error {
		b := make([]byte, 65536)
		for {
			n, err := unix.Read(fd, b)
			if err != nil || n == 0 {
				return err
			}
			if err := writeAll(fd, b[:n]); err != nil {
				return err
			}
		}
	},
	"hold": func(int, []string) error { time.Sleep(time.Hour); return nil },
	"write-and-exit": func(fd int, _ []string) error {
		return writeAll(fd, pattern(4, 50000))
	},
}

func runHelper(name string, args []string) {
	fn := helpers[name]
	if fn == nil {
		fmt.Fprintf(os.Stderr, "shunttest: no helper %q\n", name)
		os.Exit(2)
	}
	if err := fn(3, args); err != nil {
		os.Exit(1)
	}
	os.Exit(0)
}

// helper starts one and gives it fd, which this process then closes.
func (e *Env) helper(name string, fd int) *exec.Cmd {
	dup, err := unix.Dup(fd)
	e.must("dup", err)
	f := os.NewFile(uintptr(dup), "socket")
	cmd := exec.Command("/proc/self/exe", "-helper", name)
	cmd.ExtraFiles = []*os.File{f}
	cmd.Stderr = os.Stderr
	e.must("starting a helper", cmd.Start())
	e.cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	f.Close()
	e.drop(fd)
	return cmd
}
