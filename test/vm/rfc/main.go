// SPDX-License-Identifier: GPL-2.0

// rfc attaches a sock_ops program written the way the RFC describes to a cgroup
// of its own, makes connections in it, and checks that the program joined them
// without an unexpected error, that every byte came back, and that bytes went
// through rings. It runs as root inside the test machine, loads tcp_shunt if that
// is not loaded, and prints PASS or FAIL and why for a plain listener and for one
// of MPTCP, as Go programs make by default: a plain client of it is plain TCP.
//
// Neighbours: bpf/rfc.bpf.c (the program), traffic.go (the connections),
// counters.go (what the program and the module counted).
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"

	"shunt.dev/shunt/internal/module"
)

//go:generate go tool bpf2go -go-package main -output-stem rfc -target bpfel Rfc bpf/rfc.bpf.c -- -O2 -g -mcpu=v3 -Wall -Werror -I/usr/include/x86_64-linux-gnu

var (
	connections = flag.Int("connections", 300, "connections to make")
	cgroupDir   = flag.String("cgroup", "/sys/fs/cgroup/rfc", "cgroup to make and use")
	seed        = flag.Uint64("seed", 1, "of the random sizes and bytes")
)

func main() {
	flag.Parse()
	failed := false
	for _, mptcp := range []bool{false, true} {
		failed = !report(mptcp, run(mptcp)) || failed
	}
	if failed {
		os.Exit(1)
	}
}

// report prints the line of one test.
func report(mptcp bool, err error) bool {
	name := "rfc/plain-listener"
	if mptcp {
		name = "rfc/mptcp-listener"
	}
	if err != nil {
		fmt.Println("FAIL", name, err)
		return false
	}
	fmt.Printf("PASS %s %d connections, seed %d\n", name, *connections, *seed)
	return true
}

func run(mptcp bool) error {
	if err := module.Load(); err != nil {
		return err
	}
	var objs RfcObjects
	if err := LoadRfcObjects(&objs, nil); err != nil {
		return fmt.Errorf("loading the program: %w", err)
	}
	defer objs.Close()
	before, err := readModule()
	if err != nil {
		return err
	}
	leave, err := enterCgroup(*cgroupDir)
	if err != nil {
		return err
	}
	defer leave()
	l, err := link.AttachCgroup(link.CgroupOptions{
		Path: *cgroupDir, Attach: ebpf.AttachCGroupSockOps, Program: objs.RfcSplice,
	})
	if err != nil {
		return fmt.Errorf("attaching: %w", err)
	}
	defer l.Close()
	sent, err := makeTraffic(*connections, *seed, mptcp)
	if err != nil {
		return err
	}
	return judge(objs.Results, before, sent)
}

// enterCgroup makes a cgroup and moves this process there and, later, back.
func enterCgroup(dir string) (func(), error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	if err := moveTo(dir); err != nil {
		return nil, err
	}
	return func() {
		moveTo(filepath.Dir(dir))
		os.Remove(dir)
	}, nil
}

func moveTo(dir string) error {
	return os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte("0"), 0)
}
