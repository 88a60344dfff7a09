// SPDX-License-Identifier: GPL-2.0

// Busy polling: a reader with a budget spins before it sleeps, and gives way
// when another task wants its CPU.
package main

import (
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

func init() {
	joinedOnly("busy-poll/hits", busyPollHits)
	joinedOnly("busy-poll/gives-way-on-one-cpu", busyPollOneCPU)
	joinedOnly("busy-poll/ends-by-signal-and-close", busyPollEnds)
}

const soBusyPoll = 46

func busyPair(t *T, usecs int) (*Env, int, int) {
	e := newEnv(t, joinedWarm, "4")
	e.enter()
	c, s := e.pair()
	e.setInt(c, unix.SOL_SOCKET, soBusyPoll, usecs)
	e.setInt(s, unix.SOL_SOCKET, soBusyPoll, usecs)
	return e, c, s
}

// pingPong is n round trips of a byte; pin puts both ends on one CPU.
func pingPong(e *Env, c, s, n int, pin bool) time.Duration {
	onCPU := func() {
		if pin {
			var set unix.CPUSet
			set.Set(0)
			unix.SchedSetaffinity(0, &set)
		}
	}
	start := time.Now()
	for i, d := range [][2]int{{c, s}, {s, c}} {
		e.Go(func() error {
			onCPU()
			b := make([]byte, 1)
			for k := 0; k < n; k++ {
				if i == 0 {
					if err := writeAll(d[0], b); err != nil {
						return err
					}
				}
				if err := readExactly(d[0], b); err != nil {
					return err
				}
				if i == 1 {
					if err := writeAll(d[0], b); err != nil {
						return err
					}
				}
			}
			return nil
		})
	}
	e.Wait()
	return time.Since(start)
}

func busyPollHits(t *T) {
	if runtime.NumCPU() < 2 {
		t.Skipf("needs two CPUs")
	}
	e, c, s := busyPair(t, 50)
	before := readCounters()
	took := pingPong(e, c, s, scaled(3000), false)
	now := readCounters()
	hit, miss := now.since(before, "spins_hit"), now.since(before, "spins_miss")
	t.Note("%d hits, %d misses, %v", hit, miss, took)
	if hit == 0 {
		t.Fatalf("SO_BUSY_POLL 50: no spin found data (%d did not)", miss)
	}
	e.closeAll()

	e, c, s = busyPair(t, 0)
	before = readCounters()
	pingPong(e, c, s, 300, false)
	now = readCounters()
	if n := now.since(before, "spins_hit") + now.since(before, "spins_miss"); n != 0 {
		t.Fatalf("no budget, yet %d spins", n)
	}
	e.closeAll()
}

func busyPollOneCPU(t *T) {
	n := scaled(2000)
	var took [2]time.Duration
	for i, usecs := range []int{0, 50} {
		e, c, s := busyPair(t, usecs)
		took[i] = pingPong(e, c, s, n, true)
		e.closeAll()
	}
	t.Note("both ends on one CPU: parked %v, with a 50 us budget %v", took[0], took[1])
	if took[1] > 2*took[0]+50*time.Millisecond {
		t.Fatalf("both ends on one CPU: %v with a budget, %v without", took[1], took[0])
	}
}

func busyPollEnds(t *T) {
	e, c, s := busyPair(t, 10000)
	r := e.later("recv", func() string { return readOut(s) })
	e.hit(r)
	e.drop(c)
	select {
	case got := <-r.done:
		if got != hash(nil)+" then end" {
			t.Fatalf("a spinning reader at the end of the stream: %s", got)
		}
	case <-time.After(5 * time.Second):
		t.Fatalf("a spinning reader does not see the end of the stream")
	}
	e.closeAll()
}
