// SPDX-License-Identifier: GPL-2.0

// How connections end: closing, halves, linger, resets, reuse. Every test is a
// comparison with plain TCP. Neighbour: kill.go, for ends by SIGKILL.
package main

import (
	"time"

	"golang.org/x/sys/unix"
)

func init() {
	for _, fam := range []string{"4", "6", "mapped"} {
		diffFam("close/write-then-close-"+fam, fam, writeThenClose)
		diffFam("close/unread-data-"+fam, fam, unreadData)
	}
	diff("close/before-accept", closeBeforeAccept)
	diff("close/unread-both-ways", unreadBothWays)
	diff("close/unread-large", unreadLarge)
	diff("close/peer-blocked-in-recv", peerBlockedInRecv)
	diff("close/peer-blocked-in-send", peerBlockedInSend)
	diff("close/half-write", halfWrite)
	diff("close/half-write-large", halfWriteLarge)
	diff("close/half-read", halfRead)
	diff("close/half-read-own-thread-blocked", halfReadBlocked)
	diff("close/both-halves-unread", bothHalvesUnread)
	diff("close/shutdown-rdwr-peer-reads", shutdownRdwr)
	diff("close/shutdown-while-sending", shutdownWhileSending)
	diff("close/linger-zero", lingerZero)
	diff("close/linger-zero-large", lingerZeroLarge)
	diff("close/linger-timeout", lingerTimeout)
	diff("close/linger-drained", lingerDrained)
	diff("close/disconnect-and-reuse", disconnectReuse)
	diff("close/disconnect-with-data", disconnectWithData)
	joinedOnly("close/joined-again-after-disconnect", joinedAgain)
	diff("close/never-accepted", neverAccepted)
	diff("close/never-accepted-many", neverAcceptedMany)
	diff("close/late-accept", lateAccept)
	diff("close/late-accept-large", lateAcceptLarge)
	diff("close/port-reuse", portReuse)
	diff("close/epoll-edge-end", epollEdgeEnd)
	diff("close/poll-end", pollEnd)
	diff("close/dup-keeps-open", dupKeepsOpen)
	diff("close/end-seen-again", endSeenAgain)
	diff("close/simultaneous", simultaneousClose)
}

func writeThenClose(e *Env) {
	c, s := e.pair()
	w := e.later("writer", func() string {
		err := writeAll(c, pattern(1, 100000))
		e.drop(c)
		return errName(err)
	})
	e.drain(s)
	w.wait()
	e.settle()
	e.poll(s)
	e.send(s, []byte("x"), 0)
	e.settle()
	e.send(s, []byte("x"), 0)
	e.soError(s)
	e.recv(s, 1, 0)
	e.signals()
}

func unreadData(e *Env) {
	c, s := e.pair()
	e.send(c, pattern(1, 10), 0)
	e.settle()
	e.close(s)
	e.poll(c)
	e.recv(c, 100, 0)
	e.recv(c, 100, 0)
	e.send(c, []byte("x"), 0)
	e.signals()
	e.poll(c)
}

func closeBeforeAccept(e *Env) {
	l, sa := e.listen()
	e.noJoin = opt.trigger == "ulp"
	e.noRing = true
	c := e.dial(sa)
	e.send(c, pattern(1, 1000), 0)
	e.close(c)
	s := e.accept(l)
	e.poll(s)
	e.drain(s)
	e.send(s, []byte("x"), 0)
}

func unreadBothWays(e *Env) {
	c, s := e.pair()
	e.send(s, pattern(2, 500), 0)
	e.send(c, pattern(1, 10), 0)
	e.settle()
	e.close(s)
	e.poll(c)
	e.drain(c)
	e.recv(c, 10, 0)
	e.soError(c)
}

func unreadLarge(e *Env) {
	c, s := e.pair()
	unix.SetNonblock(c, true)
	fill(c, 1<<20)
	e.settle()
	e.recvN(s, 1000)
	e.close(s)
	e.poll(c)
	e.soError(c)
	e.send(c, []byte("x"), 0)
	e.recv(c, 10, 0)
}

// fill writes until the socket takes no more, or limit.
func fill(fd, limit int) (n int) {
	b := pattern(9, 16384)
	for n < limit {
		k, err := unix.SendmsgN(fd, b, nil, nil, unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL)
		if err != nil {
			return n
		}
		n += k
	}
	return n
}

func peerBlockedInRecv(e *Env) {
	c, s := e.pair()
	r := e.later("recv", func() string { return readOut(c) })
	r.waiting()
	e.close(s)
	r.wait()

	c, s = e.pair()
	e.send(c, pattern(1, 10), 0)
	r = e.later("recv", func() string { return readOut(c) })
	r.waiting()
	e.close(s) // with unread data: a reset
	r.wait()
	e.soError(c)
}

func peerBlockedInSend(e *Env) {
	big := pattern(1, 32<<20)
	c, s := e.pair()
	w := e.later("send", func() string { return errName(writeAll(c, big)) })
	w.waiting()
	e.close(s)
	w.wait()
	e.signals()
	e.soError(c)
	e.poll(c)
}

func halfWrite(e *Env) {
	c, s := e.pair()
	e.send(c, pattern(1, 1000), 0)
	e.shutdown(c, unix.SHUT_WR)
	e.settle()
	e.poll(s)
	e.poll(c)
	e.drain(s)
	e.send(c, []byte("x"), 0)
	e.signals()
	e.send(s, pattern(2, 2000), 0)
	e.settle()
	e.poll(c)
	e.recvN(c, 2000)
	e.send(s, pattern(3, 3000), 0)
	e.close(s)
	e.poll(c)
	e.drain(c)
	e.shutdown(c, unix.SHUT_WR)
	e.shutdown(c, unix.SHUT_RD)
}

func halfWriteLarge(e *Env) {
	c, s := e.pair()
	w := e.later("c writes", func() string {
		err := writeAll(c, pattern(1, 1<<20))
		unix.Shutdown(c, unix.SHUT_WR)
		return errName(err)
	})
	x := e.later("s writes", func() string {
		err := writeAll(s, pattern(2, 1<<20))
		unix.Shutdown(s, unix.SHUT_WR)
		return errName(err)
	})
	r := e.later("c reads", func() string { return readOut(c) })
	e.drain(s)
	w.wait()
	x.wait()
	r.wait()
	e.settle()
	e.poll(c)
	e.poll(s)
}

func halfRead(e *Env) {
	c, s := e.pair()
	e.send(s, pattern(1, 7), 0)
	e.settle()
	e.shutdown(c, unix.SHUT_RD)
	e.poll(c)
	e.recv(c, 100, 0)
	e.recv(c, 100, 0)
	e.send(s, pattern(2, 10), 0)
	e.settle()
	e.poll(c)
	e.recv(c, 100, 0)
	e.recv(c, 100, 0)
	e.send(c, pattern(3, 20), 0)
	e.recvN(s, 20)
	e.close(c)
	e.poll(s)
	e.drain(s)
}

func halfReadBlocked(e *Env) {
	c, s := e.pair()
	r := e.later("recv", func() string { return readOut(c) })
	r.waiting()
	e.shutdown(c, unix.SHUT_RD)
	r.wait()
	e.send(c, pattern(3, 20), 0)
	e.recvN(s, 20)
}

func bothHalvesUnread(e *Env) {
	c, s := e.pair()
	e.send(s, pattern(1, 300), 0)
	e.settle()
	e.shutdown(c, unix.SHUT_RDWR)
	e.settle()
	e.poll(c)
	e.poll(s)
	e.recv(c, 1000, 0)
	e.recv(c, 1000, 0)
	e.drain(s)
	e.send(c, []byte("x"), 0)
	e.signals()
	e.close(c)
	e.poll(s)
	e.recv(s, 10, 0)
}

func shutdownRdwr(e *Env) {
	c, s := e.pair()
	e.send(c, pattern(1, 3000), 0)
	e.shutdown(c, unix.SHUT_RDWR)
	e.settle()
	e.poll(s)
	e.drain(s)
	e.send(s, pattern(2, 10), 0)
	e.settle()
	e.poll(s)
	e.poll(c)
}

func shutdownWhileSending(e *Env) {
	big := pattern(1, 32<<20)
	c, s := e.pair()
	w := e.later("send", func() string { return errName(writeAll(c, big)) })
	w.waiting()
	e.shutdown(c, unix.SHUT_WR)
	w.wait()
	e.signals()
	e.rec("stream is a prefix: %v", isPrefix(s, big))
}

// isPrefix reads fd to its end and says whether it is the beginning of want.
func isPrefix(fd int, want []byte) string {
	b := make([]byte, 65536)
	for {
		n, err := unix.Read(fd, b)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return "yes, then " + errName(err)
		}
		if n == 0 {
			return "yes, then end"
		}
		if n > len(want) || string(b[:n]) != string(want[:n]) {
			return "no"
		}
		want = want[n:]
	}
}

func lingerZero(e *Env) {
	c, s := e.pair()
	e.send(c, pattern(1, 500), 0)
	e.settle()
	e.linger(c, 1, 0)
	e.close(c)
	e.poll(s)
	e.drain(s)
	e.recv(s, 10, 0)
	e.send(s, []byte("x"), 0)
	e.signals()
}

func lingerZeroLarge(e *Env) {
	c, s := e.pair()
	fill(c, 1<<30)
	e.linger(c, 1, 0)
	e.close(c)
	e.poll(s)
	b := make([]byte, 4096)
	n, err := unix.Read(s, b)
	e.rec("first read: %d %s", n, errName(err))
	e.rec("rest: %s", endOnly(readOut(s)))
	e.rec("again: %s", readOut(s))
}

// endOnly leaves out how much came before the end.
func endOnly(s string) string {
	for i := range s {
		if s[i] == ' ' {
			return s[i+1:]
		}
	}
	return s
}

func lingerTimeout(e *Env) {
	c, s := e.pair()
	e.setInt(s, unix.SOL_SOCKET, unix.SO_RCVBUF, 65536)
	fill(c, 1<<30)
	e.linger(c, 1, 1)
	start := time.Now()
	e.drop(c)
	e.rec("close returned %s", bucket(time.Since(start)))
	e.settle()
	e.rec("stream: %s", isPrefix16k(s))
}

// isPrefix16k reads what fill wrote to the end.
func isPrefix16k(fd int) string {
	block, b, at := pattern(9, 16384), make([]byte, 16384), 0
	for {
		n, err := unix.Read(fd, b[:16384-at])
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return "right, then " + errName(err)
		}
		if n == 0 {
			return "right, then end"
		}
		if string(b[:n]) != string(block[at:at+n]) {
			return "wrong bytes"
		}
		at = (at + n) % 16384
	}
}

func lingerDrained(e *Env) {
	c, s := e.pair()
	e.send(c, pattern(1, 100), 0)
	e.linger(c, 1, 5)
	start := time.Now()
	e.drop(c)
	e.rec("close returned %s", bucket(time.Since(start)))
	e.drain(s)
}

func disconnectReuse(e *Env) {
	l, sa := e.listen()
	c := e.dial(sa)
	s := e.accept(l)
	e.join(c, s)
	e.exchange(c, s)
	e.rec("disconnect: %s", errName(disconnect(c)))
	e.settle()
	e.poll(s)
	e.recv(s, 10, 0)
	e.recv(s, 10, 0)
	e.recv(c, 10, unix.MSG_DONTWAIT)
	e.send(c, []byte("x"), 0)
	e.rec("connect again: %s", errName(unix.Connect(c, sa)))
	s2 := e.accept(l)
	e.join(c, s2)
	e.exchange(c, s2)
	e.send(c, pattern(5, 5000), 0)
	e.recvN(s2, 5000)
	e.close(c)
	e.drain(s2)
}

// joinedAgain: a socket that was disconnected is as good as new.
func joinedAgain(t *T) {
	e := newEnv(t, joinedWarm, "4")
	e.enter()
	before := readCounters()
	disconnectReuse(e)
	if n := readCounters().since(before, "joins"); n != 2 {
		t.Fatalf("%d joins, expected one for each of the two connections", n)
	}
	e.closeAll()
}

func disconnect(fd int) error {
	var sa [16]byte // AF_UNSPEC
	_, _, no := unix.Syscall(unix.SYS_CONNECT, uintptr(fd), uintptr(ptr(&sa[0])), 16)
	if no != 0 {
		return no
	}
	return nil
}

func disconnectWithData(e *Env) {
	c, s := e.pair()
	e.send(c, pattern(1, 100), 0)
	e.send(s, pattern(2, 200), 0)
	e.settle()
	e.rec("disconnect: %s", errName(disconnect(c)))
	e.settle()
	e.poll(c)
	e.poll(s)
	e.drain(s)
	e.recv(s, 10, 0)
	e.soError(s)
	e.recv(c, 10, unix.MSG_DONTWAIT)
}

func neverAccepted(e *Env) {
	l, sa := e.listen()
	e.noJoin = opt.trigger == "ulp"
	e.noRing = true
	c := e.dial(sa)
	e.send(c, pattern(1, 100), 0)
	e.settle()
	e.close(l)
	e.poll(c)
	e.recv(c, 10, 0)
	e.recv(c, 10, 0)
	e.send(c, []byte("x"), 0)
	e.signals()
}

func neverAcceptedMany(e *Env) {
	l, sa := e.listen()
	e.noJoin = opt.trigger == "ulp"
	e.noRing = true
	var cs []int
	for i := 0; i < 50; i++ {
		cs = append(cs, e.dial(sa))
	}
	for i, c := range cs[:20] {
		if i%2 == 0 {
			e.linger(c, 1, 0)
		}
		e.drop(c)
	}
	e.close(l)
	for _, c := range cs[20:] {
		e.recv(c, 10, 0)
		e.drop(c)
	}
}

func lateAccept(e *Env) {
	l, sa := e.listen()
	e.noJoin = opt.trigger == "ulp"
	c := e.dial(sa)
	e.send(c, pattern(1, 1000), 0)
	time.Sleep(2500 * time.Millisecond) // longer than an offer lives
	e.send(c, pattern(2, 1000), 0)
	s := e.accept(l)
	e.poll(s)
	e.recvN(s, 2000)
	e.exchange(c, s)
	e.send(s, pattern(3, 300), 0)
	e.close(s)
	e.drain(c)
}

func lateAcceptLarge(e *Env) {
	l, sa := e.listen()
	e.noJoin = opt.trigger == "ulp"
	e.noRing = true
	c := e.dial(sa)
	w := e.later("writer", func() string {
		err := writeAll(c, pattern(1, 3<<20))
		unix.Shutdown(c, unix.SHUT_WR)
		return errName(err)
	})
	e.settle()
	s := e.accept(l)
	e.drain(s)
	w.wait()
}

func portReuse(e *Env) {
	l, sa := e.listen()
	tmp, tsa := e.listen() // a port that is free
	e.drop(tmp)
	port := portOf(tsa)
	for i := 0; i < 20; i++ {
		c := e.socket("c")
		e.setInt(c, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1)
		e.must("bind", unix.Bind(c, e.addr(port)))
		e.must("connect", unix.Connect(c, sa))
		e.noDelay(c)
		s := e.accept(l)
		e.join(c, s)
		e.exchange(c, s)
		e.must("write", writeAll(c, pattern(byte(i), 3000+i)))
		e.recvN(s, 3000+i)
		if i%2 == 0 {
			e.must("write", writeAll(c, pattern(byte(i), 10))) // unread at the end
		}
		e.linger(c, 1, 0)
		e.drop(c)
		e.settle()
		e.drain(s)
		e.drop(s)
	}
}

func epollEdgeEnd(e *Env) {
	c, s := e.pair()
	ep, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	e.must("epoll_create1", err)
	e.keep(ep, "ep")
	ev := unix.EpollEvent{Events: unix.EPOLLIN | unix.EPOLLOUT | unix.EPOLLRDHUP | unix.EPOLLET, Fd: int32(s)}
	e.must("epoll_ctl", unix.EpollCtl(ep, unix.EPOLL_CTL_ADD, s, &ev))
	see := func(what string) {
		e.settle()
		e.rec("%s: %s", what, events2s(epollAll(ep)))
	}
	see("first")
	e.send(c, pattern(1, 10), 0)
	see("data")
	see("still unread")
	e.send(c, pattern(1, 10), 0)
	see("more")
	e.recvN(s, 20)
	see("read")
	e.send(c, pattern(1, 10), 0)
	see("again")
	e.shutdown(c, unix.SHUT_WR)
	see("half closed")
	e.recvN(s, 10)
	e.recv(s, 10, 0)
	see("end read")
	e.shutdown(s, unix.SHUT_WR)
	see("both closed")
	e.drop(c)
	see("peer gone")
}

// epollAll collects every event there is now.
func epollAll(ep int) (seen uint32) {
	evs := make([]unix.EpollEvent, 4)
	for {
		n, err := unix.EpollWait(ep, evs, 0)
		if err == unix.EINTR {
			continue
		}
		if n <= 0 {
			return seen
		}
		for _, v := range evs[:n] {
			seen |= v.Events
		}
	}
}

func pollEnd(e *Env) {
	c, s := e.pair()
	p := e.later("poll IN", func() string { return pollFor(s, unix.POLLIN|unix.POLLRDHUP, 5000) })
	p.waiting()
	e.shutdown(c, unix.SHUT_WR)
	p.wait()
	p = e.later("poll HUP", func() string { return pollFor(s, 0, 5000) })
	p.waiting()
	e.shutdown(s, unix.SHUT_WR)
	p.wait()
	e.settle()
	e.poll(c)
	e.poll(s)
}

func dupKeepsOpen(e *Env) {
	c, s := e.pair()
	d, err := unix.Dup(c)
	e.must("dup", err)
	e.keep(d, "d")
	e.close(c)
	e.poll(s)
	e.send(d, pattern(1, 100), 0)
	e.recvN(s, 100)
	e.send(s, pattern(2, 100), 0)
	e.recvN(d, 100)
	e.close(d)
	e.drain(s)
}

func endSeenAgain(e *Env) {
	c, s := e.pair()
	e.send(c, pattern(1, 5), 0)
	e.close(c)
	e.recv(s, 5, unix.MSG_PEEK)
	e.recvN(s, 5)
	for i := 0; i < 3; i++ {
		e.recv(s, 5, 0)
		e.recv(s, 5, unix.MSG_PEEK)
		e.recv(s, 5, unix.MSG_DONTWAIT)
	}
	e.poll(s)
	e.soError(s)
}

func simultaneousClose(e *Env) {
	for i := 0; i < 20; i++ {
		c, s := e.pair()
		e.must("write", writeAll(c, pattern(1, 100)))
		e.must("write", writeAll(s, pattern(2, 100)))
		e.recvN(s, 100)
		e.recvN(c, 100)
		a := make(chan bool)
		go func() { e.drop(c); a <- true }()
		e.drop(s)
		<-a
	}
	e.rec("all closed")
}
