// SPDX-License-Identifier: GPL-2.0

// Signals to a thread that waits in a socket call: EINTR or a restart, as TCP
// does; and SIGIO. Comparisons with plain TCP. Neighbour: raw.go (SA_RESTART).
package main

import (
	"time"

	"golang.org/x/sys/unix"
)

func init() {
	for _, restart := range []bool{false, true} {
		name := map[bool]string{false: "-eintr", true: "-restart"}[restart]
		diff("signals/recv"+name, func(e *Env) { signalRecv(e, restart, 0) })
		diff("signals/recv-timeout"+name, func(e *Env) { signalRecv(e, restart, 5*time.Second) })
		diff("signals/waitall"+name, func(e *Env) { signalWaitAll(e, restart) })
		diff("signals/send"+name, func(e *Env) { signalSend(e, restart, 0) })
		diff("signals/send-timeout"+name, func(e *Env) { signalSend(e, restart, 5*time.Second) })
		diff("signals/poll"+name, func(e *Env) { signalPoll(e, restart) })
	}
	diff("signals/sigio", sigio)
}

func (e *Env) hit(l *later) {
	e.must("tgkill", unix.Tgkill(unix.Getpid(), l.tid, unix.SIGUSR1))
	e.settle()
}

func signalRecv(e *Env, restart bool, timeout time.Duration) {
	e.must("sigaction", setRestart(restart))
	c, s := e.pair()
	if timeout > 0 {
		tv := unix.NsecToTimeval(int64(timeout))
		e.must("SO_RCVTIMEO", unix.SetsockoptTimeval(s, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &tv))
	}
	for i := 0; i < 2; i++ {
		r := e.later("recv", func() string {
			b := make([]byte, 10)
			n, _, err := unix.Recvfrom(s, b, 0)
			return hash(b[:max(0, n)]) + errName(err)
		})
		r.waiting()
		e.hit(r)
		r.waiting()
		e.send(c, pattern(1, 10), 0)
		r.wait()
		e.settle()
		e.recv(s, 20, unix.MSG_DONTWAIT)
	}
	e.signals()
}

func signalWaitAll(e *Env, restart bool) {
	e.must("sigaction", setRestart(restart))
	c, s := e.pair()
	r := e.later("waitall", func() string {
		b := make([]byte, 100)
		n, _, err := unix.Recvfrom(s, b, unix.MSG_WAITALL)
		return hash(b[:max(0, n)]) + errName(err)
	})
	e.send(c, pattern(1, 10), 0)
	r.waiting()
	e.hit(r)
	r.waiting()
	e.send(c, pattern(2, 90), 0)
	r.wait()
	e.settle()
	e.recv(s, 200, unix.MSG_DONTWAIT)
}

func signalSend(e *Env, restart bool, timeout time.Duration) {
	e.must("sigaction", setRestart(restart))
	all := pattern(1, 32<<20)
	c, s := e.pair()
	if timeout > 0 {
		tv := unix.NsecToTimeval(int64(timeout))
		e.must("SO_SNDTIMEO", unix.SetsockoptTimeval(c, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &tv))
	}
	var sent int
	w := e.later("send", func() string {
		n, err := unix.SendmsgN(c, all, nil, nil, 0)
		sent = max(0, n)
		return map[bool]string{true: "partial ", false: "none or all "}[sent > 0 && sent < len(all)] + errName(err)
	})
	w.waiting()
	e.hit(w)
	w.waiting()
	w.wait()
	// Nothing left to take now: an interrupted call has sent nothing.
	for k := 1; k > 0; {
		k, _ = unix.SendmsgN(c, all[sent:min(sent+1<<20, len(all))], nil, nil, unix.MSG_DONTWAIT)
		sent += max(0, k)
		e.settle()
	}
	w = e.later("send when full", func() string {
		n, err := unix.SendmsgN(c, all[sent:sent+100], nil, nil, 0)
		sent += max(0, n)
		return errName(err)
	})
	w.waiting()
	e.hit(w)
	w.waiting()
	go func() {
		w.wait()
		unix.Shutdown(c, unix.SHUT_WR)
	}()
	end := isPrefix(s, all)
	e.rec("stream: %s", end)
	e.signals()
}

func signalPoll(e *Env, restart bool) {
	e.must("sigaction", setRestart(restart))
	c, s := e.pair()
	p := e.later("poll", func() string {
		_, err := unix.Poll([]unix.PollFd{{Fd: int32(s), Events: unix.POLLIN}}, 5000)
		return errName(err)
	})
	p.waiting()
	e.hit(p)
	p.wait()
	e.send(c, pattern(1, 1), 0)
	e.recvN(s, 1)
}

func sigio(e *Env) {
	c, s := e.pair()
	_, err := unix.FcntlInt(uintptr(s), unix.F_SETOWN, unix.Getpid())
	e.must("F_SETOWN", err)
	_, err = unix.FcntlInt(uintptr(s), unix.F_SETFL, unix.O_ASYNC)
	e.must("O_ASYNC", err)
	e.signals()
	for i := 0; i < 3; i++ {
		e.send(c, pattern(1, 10), 0)
		e.signals()
		e.recvN(s, 10)
	}
	takeSignals()
	e.shutdown(c, unix.SHUT_WR)
	e.signals()
	e.drop(c)
}
