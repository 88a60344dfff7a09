// SPDX-License-Identifier: GPL-2.0

// One side of a comparison. The same scenario runs over plain TCP and over
// joined sockets and writes down what it saw; the two logs must be equal. A
// scenario writes down nothing that timing decides (the size of one read of a
// stream, say), so plain TCP against plain TCP is equal as well.
// Neighbours: ops.go (the calls that write themselves down), run.go.
package main

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// kind is how the sockets of one side are made.
type kind struct {
	name     string
	joined   bool
	warm     bool // bytes went both ways before the scenario starts
	ringSize int
}

var (
	plainWarm   = kind{"plain", false, true, 0}
	plainFresh  = kind{"plain, fresh", false, false, 0}
	joinedWarm  = kind{"joined", true, true, 65536}
	joinedFresh = kind{"joined, fresh", true, false, 65536}
	joinedTiny  = kind{"joined, 4 KiB rings", true, true, 4096}
)

type Env struct {
	*T
	kind
	fam    string // 4, 6 or mapped
	noJoin bool   // the scenario does not end in a joined pair
	noRing bool   // it need not move a byte by ring
	names  map[int]string
	lmu    sync.Mutex
	log    []string
	fds    []int
}

func newEnv(t *T, k kind, fam string) *Env {
	return &Env{T: t, kind: k, fam: fam, names: map[int]string{}}
}

// diff adds a comparison over IPv4; diffFam over another family.
func diff(name string, fn func(*Env)) *test { return diffFam(name, "4", fn) }
func diffFam(name, fam string, fn func(*Env)) *test {
	return both(name, func(t *T) { compare(t, fam, fn) })
}

func compare(t *T, fam string, fn func(*Env)) {
	want := side(t, plainWarm, fam, fn)
	others := []kind{joinedWarm, joinedFresh, joinedTiny}
	if opt.plain {
		others = []kind{plainFresh, plainWarm}
	}
	var bad []string
	for _, k := range others {
		if d := firstDifference(want, side(t, k, fam, fn)); d != "" {
			bad = append(bad, k.name+": "+d)
		}
	}
	if len(bad) > 0 {
		t.Fatalf("%s", strings.Join(bad, "\n       "))
	}
}

func side(t *T, k kind, fam string, fn func(*Env)) []string {
	e := newEnv(t, k, fam)
	t.where = e.lastSteps
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	e.enter()
	before := readCounters()
	fn(e)
	e.closeAll()
	if opt.verbose {
		fmt.Printf("  -- %s\n    %s\n", k.name, strings.Join(e.log, "\n    "))
	}
	e.proveJoined(before)
	return e.log
}

// enter puts the process where its new sockets are joined, or are not.
func (e *Env) enter() {
	takeSignals()
	if opt.plain {
		return
	}
	dir := plainCgroup
	if e.joined {
		dir = joinedCgroup
		e.must("setting ring_size", setRingSize(e.ringSize))
		e.cleanup(func() { setRingSize(65536) })
	}
	e.must("entering "+dir, os.WriteFile(dir+"/cgroup.procs", []byte(fmt.Sprint(os.Getpid())), 0o644))
}

func (e *Env) proveJoined(before counters) {
	if !e.joined || e.noJoin {
		return
	}
	now := readCounters()
	if now.since(before, "joins") < 1 {
		e.Fatalf("%s: no connection was joined: %s", e.kind.name, now.why(before))
	}
	if e.warm && !e.noRing && now.since(before, "ring_bytes") < 1 {
		e.Fatalf("%s: joined, but no byte went by ring: %s", e.kind.name, now.why(before))
	}
}

func firstDifference(want, got []string) string {
	for i := range want {
		if i >= len(got) {
			return fmt.Sprintf("step %d: plain %q, then nothing", i, want[i])
		}
		if want[i] != got[i] {
			return fmt.Sprintf("step %d: plain %q, here %q", i, want[i], got[i])
		}
	}
	if len(got) > len(want) {
		return fmt.Sprintf("step %d: plain ended, here %q", len(want), got[len(want)])
	}
	return ""
}

// rec writes one line of what was seen.
func (e *Env) rec(format string, a ...any) {
	e.lmu.Lock()
	e.log = append(e.log, fmt.Sprintf(format, a...))
	e.lmu.Unlock()
}

func (e *Env) lastSteps() string {
	e.lmu.Lock()
	defer e.lmu.Unlock()
	n := max(0, len(e.log)-3)
	return fmt.Sprintf("%s, after %q", e.kind.name, e.log[n:])
}

// settle lets everything that is on its way arrive.
func (e *Env) settle() { time.Sleep(opt.settle) }

func (e *Env) domain() int {
	if e.fam == "4" {
		return unix.AF_INET
	}
	return unix.AF_INET6
}

// addr is this family's loopback address; v4-mapped listens as IPv6 and is
// called by IPv4.
func (e *Env) addr(port int) unix.Sockaddr {
	switch e.fam {
	case "4":
		return &unix.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}}
	case "6":
		return &unix.SockaddrInet6{Port: port, Addr: [16]byte{15: 1}}
	}
	a := &unix.SockaddrInet6{Port: port}
	copy(a.Addr[10:], []byte{0xff, 0xff, 127, 0, 0, 1})
	return a
}

func portOf(sa unix.Sockaddr) int {
	switch a := sa.(type) {
	case *unix.SockaddrInet4:
		return a.Port
	case *unix.SockaddrInet6:
		return a.Port
	}
	return 0
}

func (e *Env) keep(fd int, name string) int {
	e.lmu.Lock()
	e.fds = append(e.fds, fd)
	e.names[fd] = name
	e.lmu.Unlock()
	return fd
}

func (e *Env) nameOf(fd int) string {
	e.lmu.Lock()
	defer e.lmu.Unlock()
	return e.names[fd]
}

// drop closes fd without writing it down.
func (e *Env) drop(fd int) {
	e.lmu.Lock()
	for i, f := range e.fds {
		if f == fd {
			e.fds = append(e.fds[:i], e.fds[i+1:]...)
			break
		}
	}
	e.lmu.Unlock()
	unix.Close(fd)
}

func (e *Env) closeAll() {
	for len(e.fds) > 0 {
		e.drop(e.fds[len(e.fds)-1])
	}
}

func (e *Env) socket(name string) int {
	fd, err := unix.Socket(e.domain(), unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	e.must("socket", err)
	return e.keep(fd, name)
}

// listen takes a free port and returns the address to call.
func (e *Env) listen() (int, unix.Sockaddr) { return e.listenOn(0) }

func (e *Env) listenOn(port int) (int, unix.Sockaddr) {
	l := e.socket("l")
	unix.SetsockoptInt(l, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1)
	e.must("bind", unix.Bind(l, e.addr(port)))
	e.must("listen", unix.Listen(l, 128))
	sa, err := unix.Getsockname(l)
	e.must("getsockname", err)
	return l, e.addr(portOf(sa))
}

func (e *Env) dial(sa unix.Sockaddr) int {
	c := e.socket("c")
	e.must("connect", unix.Connect(c, sa))
	e.noDelay(c)
	return c
}

// noDelay keeps Nagle's wait for a delayed ACK out of the comparison.
func (e *Env) noDelay(fd int) {
	e.must("TCP_NODELAY", unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1))
}

func (e *Env) accept(l int) int {
	fd, _, err := unix.Accept4(l, unix.SOCK_CLOEXEC)
	e.must("accept", err)
	e.noDelay(fd)
	return e.keep(fd, "s")
}

const tcpULP = 31

// join is the trigger that needs no policy: both ends ask for it.
func (e *Env) join(c, s int) {
	if !e.joined || opt.trigger != "ulp" {
		return
	}
	for _, fd := range []int{c, s} {
		e.must("setsockopt TCP_ULP shunt", unix.SetsockoptString(fd, unix.IPPROTO_TCP, tcpULP, "shunt"))
	}
}

// pair is a connection ready for a scenario: its two ends.
func (e *Env) pair() (c, s int) {
	l, sa := e.listen()
	c = e.dial(sa)
	s = e.accept(l)
	e.drop(l)
	e.join(c, s)
	if e.warm {
		e.exchange(c, s)
	}
	return c, s
}

// exchange sends a little both ways, so that both rings are in use.
func (e *Env) exchange(c, s int) {
	for i := 0; i < 3; i++ {
		for _, d := range [][2]int{{c, s}, {s, c}} {
			if _, err := unix.Write(d[0], []byte("ping")); err != nil {
				e.Fatalf("warming up: write: %v", err)
			}
			if err := readExactly(d[1], make([]byte, 4)); err != nil {
				e.Fatalf("warming up: read: %v", err)
			}
		}
	}
}

// readExactly fills b from fd, whatever the sizes of the reads.
func readExactly(fd int, b []byte) error {
	for len(b) > 0 {
		n, err := unix.Read(fd, b)
		switch {
		case err == unix.EINTR:
		case err != nil:
			return err
		case n == 0:
			return fmt.Errorf("end of stream with %d bytes missing", len(b))
		default:
			b = b[n:]
		}
	}
	return nil
}

// writeAll gives all of b to fd, which blocks.
func writeAll(fd int, b []byte) error {
	for len(b) > 0 {
		n, err := unix.Write(fd, b)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return err
		}
		b = b[n:]
	}
	return nil
}
