// SPDX-License-Identifier: GPL-2.0

// A process that dies in the middle of a transfer, by SIGKILL. Comparisons with
// plain TCP. Neighbour: helper.go, the processes.
package main

import (
	"time"

	"golang.org/x/sys/unix"
)

func init() {
	diff("kill/sender", killSender)
	diff("kill/reader", killReader)
	diff("kill/idle-with-unread-data", killIdleUnread)
	diff("kill/idle", killIdle)
	diff("kill/exit-after-write", exitAfterWrite)
	diff("kill/blocked-in-send", killBlockedInSend)
	diff("kill/child-shares-socket", killChildSharing)
}

func killSender(e *Env) {
	c, s := e.pair()
	h := e.helper("send-forever", c)
	b := make([]byte, 16384)
	for i := 0; i < 100; i++ {
		e.must("read", readExactly(s, b))
	}
	h.Process.Kill()
	e.rec("stream: %s", isPrefix16k(s))
	e.recv(s, 1, 0)
	e.poll(s)
}

func killReader(e *Env) {
	big := pattern(1, 32<<20)
	c, s := e.pair()
	h := e.helper("read-slowly", s)
	w := e.later("writer", func() string { return errName(writeAll(c, big)) })
	time.Sleep(500 * time.Millisecond) // it started, and is in the middle
	h.Process.Kill()
	w.wait()
	e.signals()
	e.soError(c)
	e.poll(c)
}

func killIdleUnread(e *Env) {
	c, s := e.pair()
	h := e.helper("hold", s)
	e.send(c, pattern(1, 100), 0)
	r := e.later("recv", func() string { return readOut(c) })
	r.waiting()
	h.Process.Kill()
	r.wait()
	e.soError(c)
}

func killIdle(e *Env) {
	c, s := e.pair()
	h := e.helper("hold", s)
	p := e.later("poll", func() string { return pollFor(c, unix.POLLIN|unix.POLLRDHUP, 10000) })
	p.waiting()
	h.Process.Kill()
	p.wait()
	e.drain(c)
}

func exitAfterWrite(e *Env) {
	c, s := e.pair()
	h := e.helper("write-and-exit", c)
	h.Wait()
	e.drain(s)
}

func killBlockedInSend(e *Env) {
	c, s := e.pair()
	h := e.helper("send-forever", c)
	time.Sleep(300 * time.Millisecond)
	h.Process.Kill()
	h.Wait()
	e.rec("stream: %s", isPrefix16k(s))
}

// The dead child's copy of the socket is not the last: nothing ends.
func killChildSharing(e *Env) {
	c, s := e.pair()
	d, err := unix.Dup(s)
	e.must("dup", err)
	h := e.helper("hold", d)
	e.send(c, pattern(1, 100), 0)
	h.Process.Kill()
	h.Wait()
	e.settle()
	e.recvN(s, 100)
	e.send(s, pattern(2, 100), 0)
	e.recvN(c, 100)
}
