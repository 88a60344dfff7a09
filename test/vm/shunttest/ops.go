// SPDX-License-Identifier: GPL-2.0

// Socket calls that write themselves down in the log of their side.
// Neighbour: env.go.
package main

import (
	"fmt"
	"hash/crc32"
	"os"
	"os/signal"
	"runtime"
	"sort"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

func errName(err error) string {
	if err == nil {
		return "ok"
	}
	if no, ok := err.(unix.Errno); ok {
		return unix.ErrnoName(no)
	}
	return err.Error()
}

// pattern is n bytes that differ by tag and place.
func pattern(tag byte, n int) []byte {
	b := make([]byte, n)
	x := uint32(tag)*2654435761 + 1
	for i := range b {
		x = x*1664525 + 1013904223
		b[i] = byte(x >> 24)
	}
	return b
}

func hash(b []byte) string { return fmt.Sprintf("%d:%08x", len(b), crc32.ChecksumIEEE(b)) }

func (e *Env) send(fd int, b []byte, flags int) {
	n, err := unix.SendmsgN(fd, b, nil, nil, flags)
	e.rec("%s send %d flags %#x: %d %s", e.nameOf(fd), len(b), flags, max(n, 0), errName(err))
}

// recv is one call; for steps where its size is certain.
func (e *Env) recv(fd, n, flags int) []byte {
	b := make([]byte, n)
	k, _, err := unix.Recvfrom(fd, b, flags)
	k = max(k, 0)
	e.rec("%s recv %d flags %#x: %s %s", e.nameOf(fd), n, flags, hash(b[:min(k, n)]), errName(err)+lengthIfOver(k, n))
	return b[:min(k, n)]
}

func lengthIfOver(k, n int) string {
	if k > n {
		return fmt.Sprintf(" length %d", k)
	}
	return ""
}

// recvN reads n bytes of the stream however they come.
func (e *Env) recvN(fd, n int) {
	b := make([]byte, n)
	err := readExactly(fd, b)
	e.rec("%s read %d: %s %s", e.nameOf(fd), n, hash(b), errName(err))
}

// readOut reads to the end of the stream or an error.
func readOut(fd int) string {
	var all []byte
	b := make([]byte, 65536)
	for {
		n, err := unix.Read(fd, b)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return hash(all) + " then " + errName(err)
		}
		if n == 0 {
			return hash(all) + " then end"
		}
		all = append(all, b[:n]...)
	}
}

func (e *Env) drain(fd int) { e.rec("%s drain: %s", e.nameOf(fd), readOut(fd)) }

func (e *Env) shutdown(fd, how int) {
	e.rec("%s shutdown %d: %s", e.nameOf(fd), how, errName(unix.Shutdown(fd, how)))
}

// close also lets the peer hear of it.
func (e *Env) close(fd int) {
	e.rec("%s close", e.nameOf(fd))
	e.drop(fd)
	e.settle()
}

func (e *Env) soError(fd int) {
	v, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ERROR)
	e.rec("%s SO_ERROR: %s %s", e.nameOf(fd), errName(unixErr(v)), errName(err))
}

func unixErr(v int) error {
	if v == 0 {
		return nil
	}
	return unix.Errno(v)
}

const allEvents = unix.POLLIN | unix.POLLPRI | unix.POLLOUT | unix.POLLRDHUP

// pollNow is what poll says without waiting.
func pollNow(fd int) string { return pollFor(fd, allEvents, 0) }

func pollFor(fd int, events int16, ms int) string {
	p := []unix.PollFd{{Fd: int32(fd), Events: events}}
	n, err := unix.Poll(p, ms)
	for err == unix.EINTR {
		n, err = unix.Poll(p, ms)
	}
	if err != nil {
		return errName(err)
	}
	if n == 0 {
		return "nothing"
	}
	return events2s(uint32(p[0].Revents))
}

func events2s(ev uint32) string {
	var s []string
	for _, x := range []struct {
		bit  uint32
		name string
	}{{unix.POLLIN, "IN"}, {unix.POLLPRI, "PRI"}, {unix.POLLOUT, "OUT"}, {unix.POLLERR, "ERR"},
		{unix.POLLHUP, "HUP"}, {unix.POLLRDHUP, "RDHUP"}} {
		if ev&x.bit != 0 {
			s = append(s, x.name)
		}
	}
	if len(s) == 0 {
		return "none"
	}
	return strings.Join(s, "|")
}

func (e *Env) poll(fd int) { e.rec("%s poll: %s", e.nameOf(fd), pollNow(fd)) }

func (e *Env) ioctl(fd int, what string, req uint) {
	v, err := unix.IoctlGetInt(fd, req)
	e.rec("%s %s: %d %s", e.nameOf(fd), what, v, errName(err))
}

func (e *Env) setInt(fd, level, name, v int) {
	e.must(fmt.Sprintf("setsockopt %d %d", level, name), unix.SetsockoptInt(fd, level, name, v))
}

func (e *Env) linger(fd int, on, secs int32) {
	e.must("SO_LINGER", unix.SetsockoptLinger(fd, unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: on, Linger: secs}))
}

// later is a call in a thread of its own.
type later struct {
	e    *Env
	name string
	tid  int
	done chan string
}

func (e *Env) later(name string, fn func() string) *later {
	l := &later{e: e, name: name, done: make(chan string, 1)}
	tid := make(chan int)
	go func() {
		runtime.LockOSThread()
		tid <- unix.Gettid()
		l.done <- fn()
	}()
	l.tid = <-tid
	e.settle()
	return l
}

// waiting writes down whether the call still blocks.
func (l *later) waiting() {
	l.e.settle()
	select {
	case s := <-l.done:
		l.done <- s
		l.e.rec("%s: returned", l.name)
	default:
		l.e.rec("%s: blocks", l.name)
	}
}

func (l *later) wait() { l.e.rec("%s: %s", l.name, <-l.done) }

// Signals that arrived since last asked.
var (
	sigMu   sync.Mutex
	sigSeen = map[string]int{}
)

func watchSignals() {
	ch := make(chan os.Signal, 256)
	signal.Notify(ch, unix.SIGPIPE, unix.SIGIO, unix.SIGURG, unix.SIGUSR1)
	go func() {
		for s := range ch {
			sigMu.Lock()
			sigSeen[unix.SignalName(s.(unix.Signal))]++
			sigMu.Unlock()
		}
	}()
}

func takeSignals() string {
	sigMu.Lock()
	defer sigMu.Unlock()
	var out []string
	for k := range sigSeen {
		out = append(out, k)
	}
	sigSeen = map[string]int{}
	sort.Strings(out)
	return strings.Join(out, " ")
}

// signals writes down which signals came; how often is a matter of timing.
func (e *Env) signals() {
	e.settle()
	e.rec("signals: %s", takeSignals())
}

// bucket names a duration coarsely, so that an emulator's delays do not show.
func bucket(d time.Duration) string {
	switch {
	case d < 300*time.Millisecond:
		return "at once"
	case d < 4*time.Second:
		return "after its time"
	}
	return "far too late"
}
