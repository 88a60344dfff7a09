// SPDX-License-Identifier: GPL-2.0

// One socket in several hands: dup, a child process, SCM_RIGHTS.
// Comparisons with plain TCP. Neighbour: helper.go, the child processes.
package main

import "golang.org/x/sys/unix"

func init() {
	diff("share/child-echoes", childEchoes)
	diff("share/passed-by-rights", passedByRights)
	diff("share/passed-in-flight-and-dropped", droppedInFlight)
	diff("share/two-writers-by-dup", twoWritersByDup)
}

func childEchoes(e *Env) {
	c, s := e.pair()
	h := e.helper("echo", s)
	for i := 0; i < 20; i++ {
		e.must("write", writeAll(c, pattern(byte(i), 1000*i+1)))
		e.recvN(c, 1000*i+1)
	}
	e.shutdown(c, unix.SHUT_WR)
	h.Wait()
	e.drain(c)
}

// pass sends fd through a unix socket; the copy that went in is closed.
func (e *Env) pass(fd int) (in, out int) {
	p, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	e.must("socketpair", err)
	e.keep(p[0], "u0")
	e.keep(p[1], "u1")
	e.must("sendmsg", unix.Sendmsg(p[0], []byte("f"), unix.UnixRights(fd), nil, 0))
	e.drop(fd)
	return p[0], p[1]
}

func passedByRights(e *Env) {
	c, s := e.pair()
	_, u := e.pass(s)
	e.send(c, pattern(1, 1000), 0) // while nobody holds the other end
	b, oob := make([]byte, 1), make([]byte, 64)
	_, n, _, _, err := unix.Recvmsg(u, b, oob, 0)
	e.must("recvmsg", err)
	ms, err := unix.ParseSocketControlMessage(oob[:n])
	e.must("control message", err)
	fds, err := unix.ParseUnixRights(&ms[0])
	e.must("rights", err)
	s = e.keep(fds[0], "s")
	e.recvN(s, 1000)
	e.send(s, pattern(2, 500), 0)
	e.recvN(c, 500)
	e.close(s)
	e.drain(c)
}

func droppedInFlight(e *Env) {
	c, s := e.pair()
	u0, u1 := e.pass(s)
	e.send(c, pattern(1, 100), 0)
	e.drop(u1)
	e.drop(u0)
	e.settle()
	e.poll(c)
	e.recv(c, 10, 0)
}

func twoWritersByDup(e *Env) {
	c, s := e.pair()
	d, err := unix.Dup(c)
	e.must("dup", err)
	e.keep(d, "d")
	for i := 0; i < 50; i++ {
		e.must("write", writeAll(c, pattern(1, 300)))
		e.must("write", writeAll(d, pattern(2, 700)))
	}
	e.recvN(s, 50*1000)
}
