// SPDX-License-Identifier: GPL-2.0

// What the program and the module counted, and whether that is as it should be.
//
// Neighbours: bpf/rfc.bpf.c (the slots), main.go.

package main

import (
	"fmt"
	"time"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"shunt.dev/shunt/internal/proc"
)

// Slots as in bpf/rfc.bpf.c.
const (
	established = iota
	entered
	alone
	joined
	exists
	failed
	notEntered
	lastError
	results
)

func readModule() (proc.Stats, error) {
	return proc.ReadStats()
}

func judge(m *ebpf.Map, before proc.Stats, sent uint64) error {
	var r [results]uint64
	for i := range r {
		if err := m.Lookup(uint32(i), &r[i]); err != nil {
			return err
		}
	}
	n := uint64(*connections)
	switch {
	case r[failed] != 0:
		return fmt.Errorf("%d unexpected errors of bpf_sock_splice_pair, the last is %w", r[failed], unix.Errno(r[lastError]))
	case r[notEntered] != 0:
		return fmt.Errorf("%d sockets not entered into the sockhash, the last by %w", r[notEntered], unix.Errno(r[lastError]))
	case r[established] != 2*n || r[entered] != 2*n:
		return fmt.Errorf("%d callbacks and %d sockets entered, want %d of each", r[established], r[entered], 2*n)
	case r[joined] != n:
		return fmt.Errorf("%d joined, %d found alone, %d joined already; want %d joined", r[joined], r[alone], r[exists], n)
	}
	return judgeModule(before, n, sent)
}

func judgeModule(before proc.Stats, n, sent uint64) error {
	after, err := readModule()
	if err != nil {
		return err
	}
	joins := after.Get("joins") - before.Get("joins")
	bytes := after.Get("ring_bytes") - before.Get("ring_bytes")
	if joins != n {
		return fmt.Errorf("the module made %d joins, want %d", joins, n)
	}
	if bytes < sent/2 {
		return fmt.Errorf("only %d of %d bytes went through rings", bytes, sent)
	}
	return awaitEnd()
}

// awaitEnd gives the ends of the last connections a moment to go.
func awaitEnd() error {
	var held uint64
	for range 50 {
		s, err := readModule()
		if err != nil {
			return err
		}
		held = s.Get("joined") + s.Get("pairs_held") + s.Get("rings")
		if held == 0 {
			return nil
		}
		time.Sleep(100 * time.Millisecond)
	}
	return fmt.Errorf("all connections are closed, but the module still holds %d pairs or rings", held)
}
