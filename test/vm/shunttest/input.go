// SPDX-License-Identifier: GPL-2.0

// The flags, options and mistakes of send(2) and recv(2): bad buffers, peeking,
// out-of-band data, low-water marks, timeouts. Comparisons with plain TCP.
// Neighbours: signals.go, splice.go, raw.go.
package main

import (
	"bytes"
	"fmt"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

func init() {
	diff("input/bad-buffer-recv", badBufferRecv)
	diff("input/bad-buffer-send", badBufferSend)
	diff("input/half-bad-buffer-recv", halfBadRecv)
	diff("input/half-bad-buffer-send", halfBadSend)
	diff("input/half-bad-iovec", halfBadIovec)
	diff("input/bad-buffer-large", badBufferLarge)
	diff("input/zero-length", zeroLength)
	diff("input/peek", peek)
	diff("input/peek-blocks", peekBlocks)
	diff("input/peek-offset", peekOffset)
	diff("input/trunc", trunc)
	diff("input/waitall", waitAll)
	diff("input/waitall-ends", waitAllEnds)
	diff("input/dontwait", dontWait)
	diff("input/urgent", urgent)
	diff("input/urgent-inline", urgentInline)
	diff("input/urgent-signal", urgentSignal)
	diff("input/fionread", fionread)
	diff("input/tcp-inq", tcpInq)
	diff("input/rcvlowat-poll", rcvLowatPoll)
	diff("input/rcvlowat-blocking", rcvLowatBlocking)
	diff("input/readv-writev", readvWritev)
	diff("input/many-messages", manyMessages)
	diff("input/receive-timeout", receiveTimeout)
	diff("input/send-timeout", sendTimeout)
	diff("input/more-and-cork", moreAndCork)
	diff("input/wrong-socket-state", wrongState)
	diff("input/names-and-options", namesAndOptions)
	diff("input/errqueue", errQueue)
	diff("input/two-readers-one-peeks", twoReaders)
}

func (e *Env) recRaw(what string, n int, err error) { e.rec("%s: %d %s", what, n, errName(err)) }

func badBufferRecv(e *Env) {
	c, s := e.pair()
	e.send(c, pattern(1, 2000), 0)
	e.settle()
	for i := 0; i < 3; i++ {
		n, err := rawRecv(s, nowhere, 1000, 0)
		e.recRaw("recv nowhere", n, err)
	}
	n, err := rawRecv(s, nowhere, 1000, unix.MSG_PEEK)
	e.recRaw("peek nowhere", n, err)
	n, err = rawRecv(s, nowhere, 1000, unix.MSG_WAITALL)
	e.recRaw("waitall nowhere", n, err)
	e.poll(s)
	e.recvN(s, 2000)
	n, err = rawRecv(s, nowhere, 1000, unix.MSG_DONTWAIT)
	e.recRaw("recv nowhere, nothing there", n, err)
	e.send(c, pattern(2, 100), 0)
	e.recvN(s, 100)
}

func badBufferSend(e *Env) {
	c, s := e.pair()
	for _, size := range []int{1, 1000, 100000} {
		n, err := rawSend(c, nowhere, size, 0)
		e.recRaw("send nowhere", n, err)
	}
	e.settle()
	e.poll(s)
	e.recv(s, 10, unix.MSG_DONTWAIT)
	e.send(c, pattern(2, 100), 0)
	e.recvN(s, 100)
}

// How much of a half-bad buffer is used is TCP's own affair; that the stream is
// right afterwards is not.
func halfBadRecv(e *Env) {
	c, s := e.pair()
	want := pattern(1, 6000)
	m := halfPage(e)
	for _, room := range []int{1, 100, 4000} {
		e.must("write", writeAll(c, want))
		e.settle()
		at := m[4096-room : 4096]
		n, err := rawRecv(s, addrOf(at), room+4096, 0)
		ok := (n == 0 && err == unix.EFAULT) || (err == nil && n <= room && bytes.Equal(at[:n], want[:n]))
		rest := make([]byte, len(want)-n)
		e.must("read", readExactly(s, rest))
		e.rec("half-bad recv right: %v, rest right: %v", ok, bytes.Equal(rest, want[n:]))
	}
	e.recv(s, 10, unix.MSG_DONTWAIT)
}

func halfBadSend(e *Env) {
	c, s := e.pair()
	m := halfPage(e)
	copy(m, pattern(3, 4096))
	for _, good := range []int{1, 100, 4096} {
		at := m[4096-good : 4096]
		n, err := rawSend(c, addrOf(at), good+4096, 0)
		ok := (n == 0 && err == unix.EFAULT) || (err == nil && n <= good)
		e.must("write", writeAll(c, []byte("mark")))
		got := make([]byte, n+4)
		e.must("read", readExactly(s, got))
		e.rec("half-bad send right: %v, stream right: %v", ok, string(got) == string(at[:n])+"mark")
	}
	e.settle()
	e.recv(s, 10, unix.MSG_DONTWAIT)
}

func halfBadIovec(e *Env) {
	c, s := e.pair()
	good := pattern(1, 100)
	iov := []unix.Iovec{{Base: &good[0], Len: 100}, {Len: 100}}
	*(*uintptr)(unsafe.Pointer(&iov[1].Base)) = nowhere
	n, _, no := unix.Syscall(unix.SYS_WRITEV, uintptr(c), uintptr(unsafe.Pointer(&iov[0])), 2)
	k := int(n)
	if no != 0 {
		k = 0
	}
	e.rec("writev good and bad: sane %v", no == unix.EFAULT || k == 100)
	e.must("write", writeAll(c, []byte("mark")))
	got := make([]byte, k+4)
	e.must("read", readExactly(s, got))
	e.rec("stream right: %v", string(got) == string(good[:k])+"mark")

	want := pattern(2, 150)
	e.must("write", writeAll(c, want))
	e.settle()
	n, _, no = unix.Syscall(unix.SYS_READV, uintptr(s), uintptr(unsafe.Pointer(&iov[0])), 2)
	k = int(n)
	if no != 0 {
		k = 0
	}
	e.rec("readv good and bad: sane %v", (no == unix.EFAULT || k <= 100) && bytes.Equal(good[:k], want[:k]))
	rest := make([]byte, 150-k)
	e.must("read", readExactly(s, rest))
	e.rec("rest right: %v", bytes.Equal(rest, want[k:]))
}

// More than a ring holds, the bad page late in it.
func badBufferLarge(e *Env) {
	c, s := e.pair()
	size := 300000
	m, err := unix.Mmap(-1, 0, 400*1024, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	e.must("mmap", err)
	e.cleanup(func() { unix.Munmap(m) })
	good := 73 * 4096
	copy(m, pattern(5, good))
	e.must("mprotect", unix.Mprotect(m[good:], unix.PROT_NONE))
	sent := make(chan int, 1)
	w := e.later("sender", func() string {
		n, err := rawSend(c, addrOf(m), size, 0)
		sent <- n
		unix.Shutdown(c, unix.SHUT_WR)
		return map[bool]string{true: "sane", false: "wrong " + errName(err)}[n <= good && (err == nil || err == unix.EFAULT)]
	})
	r := readOut(s)
	w.wait()
	e.rec("stream right: %v", r == hash(m[:<-sent])+" then end")
}

func zeroLength(e *Env) {
	c, s := e.pair()
	e.send(c, nil, 0)
	e.recv(s, 0, unix.MSG_DONTWAIT)
	e.recv(s, 10, unix.MSG_DONTWAIT)
	n, _, no := unix.Syscall(unix.SYS_READ, uintptr(s), uintptr(nowhere), 0)
	e.recRaw("read of nothing", int(n), unixErr(int(no)))
	n, _, no = unix.Syscall(unix.SYS_WRITE, uintptr(c), uintptr(nowhere), 0)
	e.recRaw("write of nothing", int(n), unixErr(int(no)))
	e.send(c, pattern(1, 10), 0)
	e.settle()
	e.recv(s, 0, 0)
	e.recv(s, 0, unix.MSG_PEEK)
	e.recvN(s, 10)
	e.shutdown(c, unix.SHUT_WR)
	e.settle()
	e.recv(s, 0, 0)
	e.send(c, nil, unix.MSG_NOSIGNAL)
	e.send(s, nil, 0)
}

func peek(e *Env) {
	c, s := e.pair()
	e.recv(s, 10, unix.MSG_PEEK|unix.MSG_DONTWAIT)
	e.send(c, pattern(1, 100), 0)
	e.settle()
	e.recv(s, 50, unix.MSG_PEEK)
	e.recv(s, 200, unix.MSG_PEEK)
	e.recv(s, 30, 0)
	e.recv(s, 200, unix.MSG_PEEK)
	e.send(c, pattern(2, 100), 0)
	e.settle()
	e.recv(s, 170, unix.MSG_PEEK|unix.MSG_WAITALL)
	e.recvN(s, 170)
	e.recv(s, 10, unix.MSG_PEEK|unix.MSG_DONTWAIT)
	// More than a small ring: what is peeked is a prefix of what is read.
	e.must("write", writeAll(c, pattern(3, 20000)))
	e.settle()
	e.recv(s, 20000, unix.MSG_PEEK|unix.MSG_WAITALL)
	e.recvN(s, 20000)
}

func peekBlocks(e *Env) {
	c, s := e.pair()
	p := e.later("peek", func() string {
		b := make([]byte, 100)
		n, _, err := unix.Recvfrom(s, b, unix.MSG_PEEK)
		return hash(b[:max(n, 0)]) + errName(err)
	})
	p.waiting()
	e.send(c, pattern(1, 10), 0)
	p.wait()
	e.recvN(s, 10)
	p = e.later("peek at the end", func() string {
		n, _, err := unix.Recvfrom(s, make([]byte, 10), unix.MSG_PEEK)
		return fmt.Sprint(n, errName(err))
	})
	p.waiting()
	e.close(c)
	p.wait()
}

func peekOffset(e *Env) {
	c, s := e.pair()
	err := unix.SetsockoptInt(s, unix.SOL_SOCKET, unix.SO_PEEK_OFF, 0)
	e.rec("SO_PEEK_OFF: %s", errName(err))
	if err != nil {
		return
	}
	e.send(c, pattern(1, 300), 0)
	e.settle()
	e.recv(s, 100, unix.MSG_PEEK)
	e.recv(s, 100, unix.MSG_PEEK)
	e.recv(s, 50, 0)
	e.recv(s, 100, unix.MSG_PEEK)
	e.recvN(s, 250)
	e.recv(s, 10, unix.MSG_PEEK|unix.MSG_DONTWAIT)
}

func trunc(e *Env) {
	c, s := e.pair()
	e.send(c, pattern(1, 1000), 0)
	e.settle()
	n, err := rawRecv(s, nowhere, 300, unix.MSG_TRUNC) // discards, touches no buffer
	e.recRaw("discard 300", n, err)
	e.recv(s, 100, unix.MSG_PEEK|unix.MSG_TRUNC)
	e.recvN(s, 700)
	e.must("write", writeAll(c, pattern(2, 30000)))
	e.settle()
	n, err = rawRecv(s, nowhere, 20000, unix.MSG_TRUNC|unix.MSG_WAITALL)
	e.recRaw("discard 20000", n, err)
	e.recvN(s, 10000)
	e.recv(s, 10, unix.MSG_TRUNC|unix.MSG_DONTWAIT)
}

func waitAll(e *Env) {
	c, s := e.pair()
	for _, size := range []int{300, 60000} {
		r := e.later("waitall", func() string {
			b := make([]byte, size)
			n, _, err := unix.Recvfrom(s, b, unix.MSG_WAITALL)
			return hash(b[:max(0, n)]) + errName(err)
		})
		for i := 0; i < 2; i++ {
			e.must("write", writeAll(c, pattern(byte(i), size/3)))
			r.waiting()
		}
		e.must("write", writeAll(c, pattern(2, size/3)))
		r.wait()
	}
}

func waitAllEnds(e *Env) {
	c, s := e.pair()
	r := e.later("waitall", func() string {
		b := make([]byte, 1000)
		n, _, err := unix.Recvfrom(s, b, unix.MSG_WAITALL)
		return hash(b[:max(0, n)]) + errName(err)
	})
	e.send(c, pattern(1, 100), 0)
	r.waiting()
	e.close(c)
	r.wait()
	e.recv(s, 10, unix.MSG_WAITALL)
	e.send(s, []byte("x"), 0) // answered by a reset
	e.settle()
	e.recv(s, 10, unix.MSG_WAITALL)
	e.recv(s, 10, unix.MSG_WAITALL)
}

func dontWait(e *Env) {
	c, s := e.pair()
	e.recv(s, 10, unix.MSG_DONTWAIT)
	e.poll(s)
	n := fill(c, 1<<30)
	e.rec("took something: %v, then poll %s", n > 0, pollNow(c))
	e.send(c, []byte("x"), unix.MSG_DONTWAIT)
	go func() { unix.SendmsgN(c, pattern(7, 10), nil, nil, 0); unix.Shutdown(c, unix.SHUT_WR) }()
	b, total := make([]byte, 16384), 0
	block := pattern(9, 16384)
	for total < n {
		k, err := unix.Read(s, b[:min(16384-total%16384, n-total)])
		e.must("read", err)
		if !bytes.Equal(b[:k], block[total%16384:total%16384+k]) {
			e.Fatalf("%s: wrong byte near %d", e.kind.name, total)
		}
		total += k
	}
	e.drain(s)
}

func urgent(e *Env) {
	c, s := e.pair()
	e.send(c, pattern(1, 10), 0)
	e.settle()
	e.send(c, []byte("abU"), unix.MSG_OOB)
	e.settle()
	e.poll(s)
	e.ioctl(s, "SIOCATMARK", sioCAtMark)
	e.recv(s, 5, 0)
	e.ioctl(s, "SIOCATMARK", sioCAtMark)
	e.recv(s, 100, 0)
	e.ioctl(s, "SIOCATMARK", sioCAtMark)
	e.recv(s, 1, unix.MSG_OOB|unix.MSG_PEEK)
	e.recv(s, 1, unix.MSG_OOB)
	e.recv(s, 1, unix.MSG_OOB)
	e.send(c, pattern(2, 20), 0)
	e.settle()
	e.poll(s)
	e.recv(s, 100, 0)
	e.ioctl(s, "SIOCATMARK", sioCAtMark)
	e.recv(s, 1, unix.MSG_OOB)
	e.send(s, pattern(3, 5), 0)
	e.recvN(c, 5)
}

const sioCAtMark = 0x8905

func urgentInline(e *Env) {
	c, s := e.pair()
	e.setInt(s, unix.SOL_SOCKET, unix.SO_OOBINLINE, 1)
	e.send(c, pattern(1, 10), 0)
	e.send(c, []byte("U"), unix.MSG_OOB)
	e.send(c, pattern(2, 10), 0)
	e.settle()
	e.poll(s)
	e.recv(s, 100, 0)
	e.ioctl(s, "SIOCATMARK", sioCAtMark)
	e.recv(s, 100, 0)
	e.ioctl(s, "SIOCATMARK", sioCAtMark)
	e.recv(s, 1, unix.MSG_OOB)
	e.poll(s)
}

func urgentSignal(e *Env) {
	c, s := e.pair()
	_, err := unix.FcntlInt(uintptr(s), unix.F_SETOWN, unix.Getpid())
	e.must("F_SETOWN", err)
	r := e.later("recv", func() string {
		b := make([]byte, 100)
		n, _, err := unix.Recvfrom(s, b, 0)
		return hash(b[:max(n, 0)]) + errName(err)
	})
	e.send(c, []byte("U"), unix.MSG_OOB)
	e.signals()
	e.rec("poll for urgent: %s", pollFor(s, unix.POLLPRI, 1000))
	r.waiting()
	e.send(c, pattern(1, 10), 0)
	r.wait()
	e.recv(s, 1, unix.MSG_OOB)
}

func fionread(e *Env) {
	c, s := e.pair()
	e.ioctl(s, "FIONREAD", unix.TIOCINQ)
	e.send(c, pattern(1, 1000), 0)
	e.settle()
	e.ioctl(s, "FIONREAD", unix.TIOCINQ)
	e.ioctl(c, "FIONREAD", unix.TIOCINQ)
	e.recvN(s, 400)
	e.ioctl(s, "FIONREAD", unix.TIOCINQ)
	e.must("write", writeAll(c, pattern(2, 30000)))
	e.settle()
	e.ioctl(s, "FIONREAD", unix.TIOCINQ)
	e.recvN(s, 30600)
	e.ioctl(s, "FIONREAD", unix.TIOCINQ)
	e.ioctl(c, "SIOCOUTQ", unix.TIOCOUTQ)
	e.shutdown(c, unix.SHUT_WR)
	e.settle()
	e.ioctl(s, "FIONREAD at the end", unix.TIOCINQ)
}

const tcpINQ, tcpCMInq = 36, 36

func tcpInq(e *Env) {
	c, s := e.pair()
	e.setInt(s, unix.IPPROTO_TCP, tcpINQ, 1)
	e.send(c, pattern(1, 1000), 0)
	e.settle()
	for _, n := range []int{300, 600, 100} {
		b, oob := make([]byte, n), make([]byte, 64)
		k, oobn, _, _, err := unix.Recvmsg(s, b, oob, 0)
		e.must("recvmsg", err)
		ms, err := unix.ParseSocketControlMessage(oob[:oobn])
		e.must("control message", err)
		for _, m := range ms {
			e.rec("recvmsg %d: level %d type %d value %d", k, m.Header.Level, m.Header.Type, *(*int32)(unsafe.Pointer(&m.Data[0])))
		}
		e.rec("%d control messages", len(ms))
	}
	e.shutdown(c, unix.SHUT_WR)
	e.settle()
	b, oob := make([]byte, 10), make([]byte, 64)
	k, oobn, _, _, err := unix.Recvmsg(s, b, oob, 0)
	e.rec("at the end: %d %x %s", k, oob[:oobn], errName(err))
}

func rcvLowatPoll(e *Env) {
	c, s := e.pair()
	e.setInt(s, unix.SOL_SOCKET, unix.SO_RCVLOWAT, 6000)
	p := e.later("poll", func() string { return pollFor(s, unix.POLLIN, 5000) })
	for i := 0; i < 2; i++ {
		e.must("write", writeAll(c, pattern(byte(i), 2500)))
		e.settle()
		e.poll(s)
		p.waiting()
	}
	e.must("write", writeAll(c, pattern(3, 2500)))
	p.wait()
	e.poll(s)
	e.recvN(s, 2000)
	e.poll(s)
	e.recv(s, 100, unix.MSG_DONTWAIT)
	e.recvN(s, 5400)
	e.send(c, pattern(1, 10), 0)
	e.shutdown(c, unix.SHUT_WR)
	e.settle()
	e.poll(s)
}

func rcvLowatBlocking(e *Env) {
	c, s := e.pair()
	e.setInt(s, unix.SOL_SOCKET, unix.SO_RCVLOWAT, 300)
	r := e.later("recv", func() string {
		b := make([]byte, 1000)
		n, _, err := unix.Recvfrom(s, b, 0)
		return hash(b[:max(0, n)]) + errName(err)
	})
	e.send(c, pattern(1, 100), 0)
	r.waiting()
	e.send(c, pattern(2, 100), 0)
	r.waiting()
	e.send(c, pattern(3, 100), 0)
	r.wait()
	e.send(c, pattern(4, 50), 0)
	e.settle()
	e.recv(s, 50, 0)
	e.send(c, pattern(4, 50), 0)
	e.settle()
	e.recv(s, 1000, unix.MSG_DONTWAIT)
}

func readvWritev(e *Env) {
	c, s := e.pair()
	n, err := unix.Writev(c, [][]byte{pattern(1, 10), pattern(2, 5000), {}, pattern(3, 1)})
	e.recRaw("writev", n, err)
	e.settle()
	in := [][]byte{make([]byte, 3), make([]byte, 5000), make([]byte, 8)}
	n, err = unix.Readv(s, in)
	for n < 5011 && err == nil {
		var k int
		flat := bytes.Join(in, nil)
		k, err = unix.Read(s, flat[n:])
		if err != nil || k <= 0 {
			break
		}
		copy(in[0], flat[:3])
		copy(in[1], flat[3:5003])
		copy(in[2], flat[5003:])
		n += k
	}
	e.recRaw("readv "+hash(bytes.Join(in, nil)), n, err)
}

func manyMessages(e *Env) {
	c, s := e.pair()
	out := [][]byte{pattern(1, 10), pattern(2, 2000), pattern(3, 3), pattern(4, 3000)}
	ns, err := mmsg(unix.SYS_SENDMMSG, c, out, 0)
	e.rec("sendmmsg: %v %s", ns, errName(err))
	e.settle()
	in := [][]byte{make([]byte, 13), make([]byte, 2000), make([]byte, 3000)}
	ns, err = mmsg(unix.SYS_RECVMMSG, s, in, unix.MSG_WAITALL)
	e.rec("recvmmsg: %v %s %s", ns, errName(err), hash(bytes.Join(in, nil)))
	ns, err = mmsg(unix.SYS_RECVMMSG, s, in, unix.MSG_DONTWAIT)
	e.rec("recvmmsg of nothing: %v %s", ns, errName(err))
}

func receiveTimeout(e *Env) {
	c, s := e.pair()
	tv := unix.NsecToTimeval(int64(400 * time.Millisecond))
	e.must("SO_RCVTIMEO", unix.SetsockoptTimeval(s, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &tv))
	start := time.Now()
	e.recv(s, 10, 0)
	e.rec("it came back %s", bucket(time.Since(start)))
	e.send(c, pattern(1, 5), 0)
	e.settle()
	start = time.Now()
	e.recv(s, 10, unix.MSG_WAITALL)
	e.rec("it came back %s", bucket(time.Since(start)))
	start = time.Now()
	e.recv(s, 10, unix.MSG_PEEK)
	e.rec("it came back %s", bucket(time.Since(start)))
	e.send(c, pattern(1, 5), 0)
	e.recvN(s, 5)
}

func sendTimeout(e *Env) {
	c, s := e.pair()
	tv := unix.NsecToTimeval(int64(400 * time.Millisecond))
	e.must("SO_SNDTIMEO", unix.SetsockoptTimeval(c, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &tv))
	all := pattern(1, 32<<20)
	start := time.Now()
	n, err := unix.SendmsgN(c, all, nil, nil, 0)
	e.rec("partial: %v %s, %s", n > 0 && n < 32<<20, errName(err), bucket(time.Since(start)))
	start = time.Now()
	k, err := unix.SendmsgN(c, all[n:], nil, nil, 0)
	for err == nil { // the window may have opened a little
		n += k
		start = time.Now()
		k, err = unix.SendmsgN(c, all[n:], nil, nil, 0)
	}
	e.rec("then %s, %s", errName(err), bucket(time.Since(start)))
	got := make([]byte, n)
	e.must("read", readExactly(s, got))
	e.rec("stream right: %v", bytes.Equal(got, all[:n]))
	e.poll(c)
}

func moreAndCork(e *Env) {
	c, s := e.pair()
	e.send(c, pattern(1, 10), unix.MSG_MORE)
	e.send(c, pattern(2, 10), 0)
	e.recvN(s, 20)
	e.setInt(c, unix.IPPROTO_TCP, unix.TCP_CORK, 1)
	e.send(c, pattern(3, 10), 0)
	e.send(c, pattern(4, 10), 0)
	e.setInt(c, unix.IPPROTO_TCP, unix.TCP_CORK, 0)
	e.recvN(s, 20)
	e.send(c, pattern(5, 10), unix.MSG_MORE) // let go within 200 ms
	e.recvN(s, 10)
	e.send(c, pattern(6, 10), unix.MSG_MORE)
	e.shutdown(c, unix.SHUT_WR)
	e.drain(s)
}

func wrongState(e *Env) {
	e.noJoin = true
	fd := e.socket("f")
	e.send(fd, []byte("x"), unix.MSG_NOSIGNAL)
	e.recv(fd, 10, 0)
	e.shutdown(fd, unix.SHUT_RDWR)
	l, _ := e.listen()
	e.send(l, []byte("x"), unix.MSG_NOSIGNAL)
	e.recv(l, 10, unix.MSG_DONTWAIT)
	e.poll(l)
	c, s := e.pair()
	e.rec("listen on it: %s", errName(unix.Listen(c, 1)))
	e.rec("connect again: %s", errName(unix.Connect(c, e.addr(1))))
	e.rec("bind it: %s", errName(unix.Bind(c, e.addr(0))))
	_, _, err := unix.Accept4(s, 0)
	e.rec("accept on it: %s", errName(err))
	e.send(c, []byte("x"), 0)
	e.recvN(s, 1)
	n, err := unix.SendmsgN(c, []byte("to"), nil, e.addr(9), 0)
	e.recRaw("sendto with an address", n, err)
	e.recvN(s, 2)
	n, err = unix.SendmsgN(c, []byte("control"), make([]byte, 3), nil, 0)
	e.recRaw("sendmsg with a torn control message", n, err)
	_, err = unix.FcntlInt(uintptr(c), unix.F_SETFL, unix.O_NONBLOCK)
	e.rec("O_NONBLOCK: %s", errName(err))
	e.recv(c, 10, 0)
}

// namesAndOptions checks that a joined socket still answers as a TCP socket.
func namesAndOptions(e *Env) {
	c, s := e.pair()
	cn, _ := unix.Getsockname(c)
	sp, _ := unix.Getpeername(s)
	e.rec("names agree: %v", portOf(cn) == portOf(sp) && portOf(cn) != 0)
	for _, o := range [][2]int{{unix.SOL_SOCKET, unix.SO_TYPE}, {unix.SOL_SOCKET, unix.SO_PROTOCOL},
		{unix.SOL_SOCKET, unix.SO_DOMAIN}, {unix.SOL_SOCKET, unix.SO_ACCEPTCONN}, {unix.SOL_SOCKET, unix.SO_ERROR},
		{unix.IPPROTO_TCP, unix.TCP_NODELAY}} {
		v, err := unix.GetsockoptInt(c, o[0], o[1])
		e.rec("option %v: %d %s", o, v, errName(err))
	}
	for _, o := range [][3]int{{unix.SOL_SOCKET, unix.SO_KEEPALIVE, 1}, {unix.SOL_SOCKET, unix.SO_RCVBUF, 200000},
		{unix.SOL_SOCKET, unix.SO_SNDBUF, 200000}, {unix.IPPROTO_TCP, unix.TCP_QUICKACK, 1},
		{unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, 5000}, {unix.IPPROTO_TCP, unix.TCP_NOTSENT_LOWAT, 16384}} {
		e.rec("set %v: %s", o, errName(unix.SetsockoptInt(c, o[0], o[1], o[2])))
	}
	ti, err := unix.GetsockoptTCPInfo(c, unix.IPPROTO_TCP, unix.TCP_INFO)
	e.must("TCP_INFO", err)
	e.rec("state %d", ti.State)
	e.send(c, pattern(1, 100), 0)
	e.recvN(s, 100)
	e.ioctl(c, "SIOCGSTAMP", 0x8906)
	e.ioctl(c, "an unknown ioctl", 0x89ff)
}

func errQueue(e *Env) {
	c, s := e.pair()
	e.recv(c, 10, unix.MSG_ERRQUEUE|unix.MSG_DONTWAIT)
	e.send(s, pattern(1, 10), 0)
	e.settle()
	e.recv(c, 10, unix.MSG_ERRQUEUE|unix.MSG_DONTWAIT)
	e.recvN(c, 10)
}

func twoReaders(e *Env) {
	c, s := e.pair()
	a := e.later("reader", func() string {
		b := make([]byte, 10)
		return errName(readExactly(s, b)) + hash(b)
	})
	p := e.later("poller", func() string { return pollFor(s, unix.POLLIN|unix.POLLRDHUP, 5000) })
	a.waiting()
	e.send(c, pattern(1, 10), 0)
	a.wait()
	e.shutdown(c, unix.SHUT_WR)
	e.settle()
	p.done <- strings0(<-p.done) // data or end: which of them it saw is timing
	p.wait()
}

func strings0(s string) string {
	if len(s) >= 2 && s[:2] == "IN" {
		return "woke"
	}
	return s
}
