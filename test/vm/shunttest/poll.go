// SPDX-License-Identifier: GPL-2.0

// Waiting for readiness: nonblocking sockets, poll, epoll by level and by edge.
// Comparisons with plain TCP. Neighbour: close.go, how ends look to a poller.
package main

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

func init() {
	diff("poll/nonblocking", nonblocking)
	diff("poll/blocks-until-data", pollBlocks)
	diff("poll/room-after-full", roomAfterFull)
	for _, how := range []struct {
		name  string
		flags uint32
	}{{"level", 0}, {"edge", unix.EPOLLET}, {"oneshot", unix.EPOLLONESHOT}} {
		diff("poll/epoll-"+how.name, func(e *Env) { epollEvents(e, how.flags) })
	}
	diff("poll/epoll-room-edge", epollRoomEdge)
	diff("poll/epoll-added-with-data-there", epollAddedLate)
	diff("poll/epoll-two-watchers", epollTwoWatchers)
	diff("poll/connect-nonblocking", connectNonblocking)
	diff("poll/wake-by-one-byte-1000-times", wakeByOneByte)
}

func nonblocking(e *Env) {
	c, s := e.pair()
	e.must("O_NONBLOCK", unix.SetNonblock(s, true))
	e.recv(s, 10, 0)
	e.recv(s, 10, unix.MSG_WAITALL)
	e.send(c, pattern(1, 5), 0)
	e.settle()
	e.recv(s, 10, unix.MSG_WAITALL)
	e.recv(s, 10, 0)
	e.shutdown(c, unix.SHUT_WR)
	e.settle()
	e.recv(s, 10, 0)
}

func pollBlocks(e *Env) {
	c, s := e.pair()
	for i := 0; i < 3; i++ {
		p := e.later("poll", func() string { return pollFor(s, unix.POLLIN, 5000) })
		p.waiting()
		e.send(c, pattern(1, 10), 0)
		p.wait()
		e.recvN(s, 10)
		e.rec("no data: %s", pollFor(s, unix.POLLIN, 10))
	}
}

func roomAfterFull(e *Env) {
	c, s := e.pair()
	for i := 0; i < 3; i++ {
		n := e.fillUp(c, s)
		e.rec("full: %s", pollNow(c))
		p := e.later("poll for room", func() string { return pollFor(c, unix.POLLOUT, 10000) })
		p.waiting()
		e.must("read", readExactly(s, make([]byte, n)))
		p.wait()
	}
}

// fillUp writes until nothing more is taken, also after a while. The buffers
// are fixed: one that grows by itself makes room at any moment.
func (e *Env) fillUp(c, s int) (n int) {
	e.setInt(c, unix.SOL_SOCKET, unix.SO_SNDBUF, 65536)
	e.setInt(s, unix.SOL_SOCKET, unix.SO_RCVBUF, 65536)
	for k := 1; k > 0; {
		k = fill(c, 1<<30)
		n += k
		time.Sleep(3 * opt.settle)
	}
	return n
}

func (e *Env) epoll(fd int, events uint32) int {
	ep, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	e.must("epoll_create1", err)
	e.keep(ep, "ep")
	e.must("epoll_ctl", unix.EpollCtl(ep, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: events, Fd: int32(fd)}))
	return ep
}

// next waits for one event.
func next(ep, ms int) string {
	evs := make([]unix.EpollEvent, 1)
	n, err := unix.EpollWait(ep, evs, ms)
	for err == unix.EINTR {
		n, err = unix.EpollWait(ep, evs, ms)
	}
	if n <= 0 {
		return "nothing"
	}
	return events2s(evs[0].Events)
}

func epollEvents(e *Env, flags uint32) {
	c, s := e.pair()
	ep := e.epoll(s, unix.EPOLLIN|unix.EPOLLRDHUP|flags)
	e.rec("before: %s", next(ep, 0))
	for i := 0; i < 3; i++ {
		w := e.later("wait", func() string { return next(ep, 1000) })
		e.send(c, pattern(1, 100), 0)
		w.wait()
		e.rec("unread: %s", next(ep, 0))
		e.recvN(s, 40)
		e.rec("partly read: %s", next(ep, 0))
		e.recvN(s, 60)
		e.rec("all read: %s", next(ep, 0))
		if i == 1 && flags == unix.EPOLLONESHOT {
			ev := unix.EpollEvent{Events: unix.EPOLLIN | flags, Fd: int32(s)}
			e.must("epoll_ctl", unix.EpollCtl(ep, unix.EPOLL_CTL_MOD, s, &ev))
		}
	}
	w := e.later("wait for the end", func() string { return next(ep, 1000) })
	e.shutdown(c, unix.SHUT_WR)
	w.wait()
}

// An edge-triggered writer hears once that there is room again.
func epollRoomEdge(e *Env) {
	c, s := e.pair()
	ep := e.epoll(c, unix.EPOLLOUT|unix.EPOLLET)
	e.rec("at first: %s", next(ep, 1000))
	for i := 0; i < 3; i++ {
		n := e.fillUp(c, s)
		epollAll(ep)
		w := e.later("wait for room", func() string { return next(ep, 10000) })
		w.waiting()
		e.must("read", readExactly(s, make([]byte, n)))
		w.wait()
	}
}

func epollAddedLate(e *Env) {
	c, s := e.pair()
	e.send(c, pattern(1, 100), 0)
	e.settle()
	ep := e.epoll(s, unix.EPOLLIN|unix.EPOLLET)
	e.rec("late: %s", next(ep, 1000))
	e.rec("then: %s", next(ep, 0))
	e.recvN(s, 100)
	ep = e.epoll(s, unix.EPOLLIN|unix.EPOLLOUT)
	e.rec("empty: %s", next(ep, 0))
}

func epollTwoWatchers(e *Env) {
	c, s := e.pair()
	a, b := e.epoll(s, unix.EPOLLIN|unix.EPOLLET), e.epoll(s, unix.EPOLLIN)
	outer := e.epoll(b, unix.EPOLLIN)
	e.send(c, pattern(1, 100), 0)
	e.settle()
	e.rec("edge %s, level %s, nested %s", next(a, 0), next(b, 0), next(outer, 0))
	e.recvN(s, 100)
	e.rec("edge %s, level %s, nested %s", next(a, 0), next(b, 0), next(outer, 0))
}

func connectNonblocking(e *Env) {
	l, sa := e.listen()
	for i := 0; i < 5; i++ {
		c := e.socket("c")
		e.must("O_NONBLOCK", unix.SetNonblock(c, true))
		err := unix.Connect(c, sa)
		if err != nil && err != unix.EINPROGRESS {
			e.Fatalf("connect: %v", err)
		}
		e.rec("writable: %s", pollFor(c, unix.POLLOUT, 5000))
		e.soError(c)
		e.noDelay(c)
		e.send(c, pattern(1, 100), 0)
		s := e.accept(l)
		e.join(c, s)
		e.recvN(s, 100)
		e.send(s, pattern(1, 200), 0)
		e.rec("readable: %s", pollFor(c, unix.POLLIN, 5000))
		e.recv(c, 300, 0)
		e.send(c, pattern(1, 300), 0)
		e.recvN(s, 300)
	}
}

// A lost wake-up would leave one of these polls waiting.
func wakeByOneByte(e *Env) {
	c, s := e.pair()
	rounds := scaled(1000)
	ep := e.epoll(s, unix.EPOLLIN|unix.EPOLLET)
	e.must("O_NONBLOCK", unix.SetNonblock(s, true))
	echo := e.later("echo", func() string {
		b := make([]byte, 10)
		for i := 0; i < rounds; {
			if next(ep, 10000) == "nothing" {
				return fmt.Sprintf("no event after %d", i)
			}
			for {
				n, err := unix.Read(s, b)
				if err != nil || n <= 0 {
					break
				}
				i += n
				if err := writeAll(s, b[:n]); err != nil {
					return errName(err)
				}
			}
		}
		return "all"
	})
	b := make([]byte, 1)
	for i := 0; i < rounds; i++ {
		e.must("write", writeAll(c, b))
		if got := pollFor(c, unix.POLLIN, 10000); got != "IN" {
			e.Fatalf("%s: round %d: poll says %s", e.kind.name, i, got)
		}
		e.must("read", readExactly(c, b))
	}
	echo.wait()
}
