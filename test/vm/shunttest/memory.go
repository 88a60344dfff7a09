// SPDX-License-Identifier: GPL-2.0

// Ring memory: charged to the memory cgroup, and a refusal leaves plain TCP.
package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

func init() {
	joinedOnly("memory/no-room-for-rings", noRoomForRings)
	joinedOnly("memory/charged-to-the-cgroup", chargedToCgroup)
}

const tightCgroup = joinedCgroup + "/tight"

// tight moves the process into a memory cgroup below the joined one.
func tight(e *Env) {
	e.leaveCgroup()
	e.cleanup(func() { e.leaveCgroup(); leaveTight() })
	for _, d := range []string{"/sys/fs/cgroup", joinedCgroup} {
		if err := os.WriteFile(d+"/cgroup.subtree_control", []byte("+memory"), 0o644); err != nil {
			e.Skipf("no memory cgroups here: %v", err)
		}
	}
	e.must("mkdir", os.MkdirAll(tightCgroup, 0o755))
	e.must("entering", os.WriteFile(tightCgroup+"/cgroup.procs", []byte(fmt.Sprint(os.Getpid())), 0o644))
}

// leaveTight makes the joined cgroup one that processes can be in again.
func leaveTight() {
	os.Remove(tightCgroup)
	os.WriteFile(joinedCgroup+"/cgroup.subtree_control", []byte("-memory"), 0o644)
}

func cgroupNumber(name string) int64 {
	b, _ := os.ReadFile(tightCgroup + "/" + name)
	n, _ := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64)
	return n
}

func noRoomForRings(t *T) {
	e := newEnv(t, kind{"joined", true, false, 4 << 20}, "4")
	e.enter()
	tight(e)
	before := readCounters()
	l, sa := e.listen()
	want := pattern(1, 200000)
	buf := make([]byte, 10000)
	limit := cgroupNumber("memory.current") + 3<<20
	e.must("memory.max", os.WriteFile(tightCgroup+"/memory.max", []byte(fmt.Sprint(limit)), 0o644))
	c := e.dial(sa)
	s := e.accept(l)
	e.join(c, s)
	for at := 0; at < len(want); at += len(buf) {
		for _, d := range [][2]int{{c, s}, {s, c}} {
			e.must("write", writeAll(d[0], want[at:at+len(buf)]))
			e.must("read", readExactly(d[1], buf))
			e.same("stream", buf, want[at:at+len(buf)])
		}
	}
	now := readCounters()
	held := now["ring_memory"]
	e.must("memory.max", os.WriteFile(tightCgroup+"/memory.max", []byte("max"), 0o644))
	e.exchange(c, s)
	t.Note("4 MiB rings in 3 MiB: joined %d, ring_memory %d, %s", now.since(before, "joins"), held, now.why(before))
	if held > 3<<20 {
		t.Fatalf("%d bytes of rings fit into 3 MiB: they are not charged", held)
	}
	e.closeAll()
}

func chargedToCgroup(t *T) {
	e := newEnv(t, kind{"joined", true, false, 1 << 20}, "4")
	e.enter()
	tight(e)
	c, s := e.pair()
	before := cgroupNumber("memory.current")
	e.exchange(c, s)
	after := cgroupNumber("memory.current")
	held := readCounters()["ring_memory"]
	t.Note("ring_memory %d, the cgroup grew by %d", held, after-before)
	if held < 2<<20 {
		t.Skipf("two rings of 1 MiB are not there: ring_memory %d", held)
	}
	if after-before < held*9/10 {
		t.Fatalf("%d bytes of rings, but the memory cgroup grew by %d", held, after-before)
	}
	e.closeAll()
	unix.Sync()
}
