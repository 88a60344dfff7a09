// SPDX-License-Identifier: GPL-2.0

// The module comes and goes: busy while connections are joined, unloadable
// after, and loaded and unloaded many times under traffic.
package main

import (
	"fmt"
	"os/exec"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

func init() {
	joinedOnly("module/busy-while-joined", busyWhileJoined)
	joinedOnly("module/load-unload-100-times", loadUnload100).within(8 * time.Minute)
	joinedOnly("module/policy-up-and-down", loadUnloadPolicy).within(4 * time.Minute)
	joinedOnly("module/ring-size-limits", ringSizeLimits)
}

func rmmod() error { return unix.DeleteModule("tcp_shunt", unix.O_NONBLOCK) }

func busyWhileJoined(t *T) {
	e := newEnv(t, joinedWarm, "4")
	e.enter()
	before := readCounters()
	c, s := e.pair()
	e.proveJoined(before)
	if err := rmmod(); err != unix.EWOULDBLOCK && err != unix.EBUSY {
		t.Fatalf("rmmod while joined: %v, expected it to be busy", err)
	}
	e.exchange(c, s)
	t.cleanup(func() { policyUp() })
	if opt.trigger == "policy" {
		out, err := exec.Command("shunt", "down").CombinedOutput()
		t.Logf("shunt down: %v %s", err, out)
		if modUseCount() < 1 {
			t.Fatalf("shunt down unloaded the module under a joined connection")
		}
	}
	if err := rmmod(); err == nil {
		t.Fatalf("rmmod under a joined connection succeeded")
	}
	ring := readCounters()["ring_bytes"]
	e.exchange(c, s)
	e.must("write", writeAll(c, pattern(1, 100000)))
	e.must("stream", e.stream(s, 1, 100000, 10000, func(int) {}))
	if readCounters()["ring_bytes"] == ring {
		t.Fatalf("after shunt down the joined connection no longer uses its rings")
	}
	e.closeAll()
	if why := eventually(5*time.Second, unloaded); why != "" {
		t.Fatalf("after the last joined connection: %s", why)
	}
}

// unloaded tries, and says why it cannot be.
func unloaded() string {
	err := rmmod()
	if err == nil || err == unix.ENOENT {
		return ""
	}
	return fmt.Sprintf("rmmod: %v, use count %d", err, modUseCount())
}

// loadUnload100 has the applications' own trigger: it needs no policy, and finds
// the module there or not, whichever moment it is.
func loadUnload100(t *T) {
	down()
	opt.trigger = "ulp"
	t.cleanup(func() { opt.trigger = triggerOfAll; policyUp() })
	t.must("loading the module", policyUp())
	underTraffic(t, scaled(100))
}

func loadUnloadPolicy(t *T) {
	if opt.trigger != "policy" {
		t.Skipf("needs the policy")
	}
	t.cleanup(func() { policyUp() })
	underTraffic(t, scaled(10))
}

func down() {
	if opt.trigger == "policy" {
		exec.Command("shunt", "down").Run()
	}
}

var triggerOfAll string

// underTraffic loads and unloads while three threads open connections.
func underTraffic(t *T, cycles int) {
	e := newEnv(t, joinedFresh, "4")
	e.enter()
	var stop atomic.Bool
	var asked, talked, joins atomic.Int64
	for i := 0; i < 3; i++ {
		t.Go(func() error {
			for !stop.Load() {
				ok, err := visit(e)
				if err != nil {
					return err
				}
				if ok {
					asked.Add(1)
				}
				talked.Add(1)
				time.Sleep(time.Millisecond)
			}
			return nil
		})
	}
	err := cycle(cycles, &joins)
	stop.Store(true)
	t.Wait()
	if err != nil {
		t.Fatalf("%v", err)
	}
	t.Note("%d cycles, %d connections, at least %d joined", cycles, talked.Load(), joins.Load())
	if joins.Load() == 0 {
		t.Fatalf("no connection was joined: there was no traffic to unload under")
	}
}

// cycle unloads and loads n times and adds up the joins seen in between; the
// counters start again with each load.
func cycle(n int, joins *atomic.Int64) error {
	for i := 0; i < n; i++ {
		time.Sleep(20 * time.Millisecond)
		joins.Add(readCounters()["joins"])
		if opt.trigger == "policy" {
			if out, err := exec.Command("shunt", "down").CombinedOutput(); err != nil && !strings.Contains(string(out), "joined") {
				return fmt.Errorf("cycle %d: shunt down: %v %s", i, err, out)
			}
		}
		if why := eventually(10*time.Second, unloaded); why != "" {
			return fmt.Errorf("cycle %d: %s", i, why)
		}
		if err := policyUp(); err != nil {
			return fmt.Errorf("cycle %d: %v", i, err)
		}
	}
	return nil
}

// visit opens one connection, asks for the ring where that is the trigger, and
// sends a few messages. Whether it is joined depends on the moment.
func visit(e *Env) (joined bool, err error) {
	l, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return false, err
	}
	defer unix.Close(l)
	if err := unix.Bind(l, e.addr(0)); err != nil {
		return false, err
	}
	if err := unix.Listen(l, 1); err != nil {
		return false, err
	}
	sa, _ := unix.Getsockname(l)
	c, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return false, err
	}
	defer unix.Close(c)
	if err := unix.Connect(c, sa); err != nil {
		return false, fmt.Errorf("connect: %w", err)
	}
	s, _, err := unix.Accept4(l, unix.SOCK_CLOEXEC)
	if err != nil {
		return false, err
	}
	defer unix.Close(s)
	if opt.trigger == "ulp" {
		joined = unix.SetsockoptString(c, unix.IPPROTO_TCP, tcpULP, "shunt") == nil &&
			unix.SetsockoptString(s, unix.IPPROTO_TCP, tcpULP, "shunt") == nil
	}
	b := make([]byte, 3000)
	for i := 0; i < 5; i++ {
		for _, d := range [][2]int{{c, s}, {s, c}} {
			if err := writeAll(d[0], pattern(byte(i), 3000)); err != nil {
				return joined, err
			}
			if err := readExactly(d[1], b); err != nil {
				return joined, err
			}
			if string(b) != string(pattern(byte(i), 3000)) {
				return joined, fmt.Errorf("wrong bytes")
			}
		}
	}
	return joined, nil
}

func ringSizeLimits(t *T) {
	t.cleanup(func() { setRingSize(65536) })
	for _, bad := range []int{0, 1, 4095, 5000, 8 << 20, -4096} {
		if setRingSize(bad) == nil {
			t.Fatalf("ring_size %d was accepted", bad)
		}
	}
	for _, good := range []int{4096, 1 << 22} {
		e := newEnv(t, kind{"joined", true, true, good}, "4")
		e.enter()
		before := readCounters()
		c, s := e.pair()
		e.exchange(c, s)
		e.proveJoined(before)
		if m := readCounters()["ring_memory"]; m < int64(good) {
			t.Fatalf("ring_size %d: ring_memory is %d", good, m)
		}
		e.closeAll()
	}
}
