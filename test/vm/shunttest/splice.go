// SPDX-License-Identifier: GPL-2.0

// splice, tee, sendfile, vmsplice and MSG_ZEROCOPY on sockets, and Go's own
// io.Copy, which splices. Comparisons with plain TCP.
package main

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

func init() {
	diff("splice/out", spliceOut)
	diff("splice/out-large", spliceOutLarge)
	diff("splice/in", spliceIn)
	diff("splice/through", spliceThrough)
	diff("splice/tee", spliceTee)
	diff("splice/nothing-there", spliceNothing)
	diff("splice/sendfile", sendFile)
	diff("splice/sendfile-nonblocking", sendFileNonblocking)
	diff("splice/zerocopy", zeroCopy)
	diff("splice/go-copy", goCopy)
	diff("splice/sink-is-gone", spliceSinkGone)
	diff("splice/mixed-with-recv", spliceMixed)
}

func (e *Env) pipe() (r, w int) {
	var p [2]int
	e.must("pipe", unix.Pipe2(p[:], unix.O_CLOEXEC))
	return e.keep(p[0], "pr"), e.keep(p[1], "pw")
}

func splice(in, out, n, flags int) (int, error) {
	k, err := unix.Splice(in, nil, out, nil, n, flags)
	return int(k), err
}

// spliceAll moves n bytes and says how that ended.
func spliceAll(in, out, n int) (int, error) {
	total := 0
	for total < n {
		k, err := splice(in, out, n-total, unix.SPLICE_F_MOVE)
		if err == unix.EINTR {
			continue
		}
		if err != nil || k == 0 {
			return total, err
		}
		total += k
	}
	return total, nil
}

func spliceOut(e *Env) {
	c, s := e.pair()
	r, w := e.pipe()
	e.send(c, pattern(1, 5000), 0)
	e.settle()
	n, err := spliceAll(s, w, 5000)
	e.recRaw("splice out", n, err)
	e.recvN(r, 5000)
	x := e.later("splice waits", func() string {
		n, err := splice(s, w, 100, 0)
		return fmt.Sprint(n, errName(err))
	})
	x.waiting()
	e.send(c, pattern(2, 60), 0)
	x.wait()
	e.recvN(r, 60)
	e.shutdown(c, unix.SHUT_WR)
	e.settle()
	n, err = splice(s, w, 100, 0)
	e.recRaw("splice at the end", n, err)
}

func spliceOutLarge(e *Env) {
	c, s := e.pair()
	r, w := e.pipe()
	total := 2 << 20
	a := e.later("writer", func() string { return errName(writeAll(c, pattern(1, total))) })
	b := e.later("splicer", func() string {
		n, err := spliceAll(s, w, total)
		if n != total {
			return "short " + errName(err)
		}
		return errName(err)
	})
	e.recvN(r, total)
	a.wait()
	b.wait()
}

func spliceIn(e *Env) {
	c, s := e.pair()
	r, w := e.pipe()
	total := 1 << 20
	a := e.later("writer", func() string { return errName(writeAll(w, pattern(3, total))) })
	b := e.later("splicer", func() string {
		n, err := spliceAll(r, c, total)
		if n != total {
			return "short " + errName(err)
		}
		return errName(err)
	})
	e.recvN(s, total)
	a.wait()
	b.wait()
	// Order: bytes by splice and by send in one stream.
	e.must("write", writeAll(w, pattern(4, 1000)))
	e.must("write", writeAll(c, pattern(5, 1000)))
	n, err := spliceAll(r, c, 1000)
	e.recRaw("splice in", n, err)
	e.must("write", writeAll(c, pattern(6, 1000)))
	e.recvN(s, 3000)
}

// spliceThrough is a proxy: socket, pipe, socket.
func spliceThrough(e *Env) {
	c, s := e.pair()
	c2, s2 := e.pair()
	r, w := e.pipe()
	total := 2 << 20
	a := e.later("writer", func() string {
		err := writeAll(c, pattern(1, total))
		unix.Shutdown(c, unix.SHUT_WR)
		return errName(err)
	})
	b := e.later("proxy", func() string {
		for {
			n, err := splice(s, w, 65536, unix.SPLICE_F_MOVE)
			if err == unix.EINTR {
				continue
			}
			if err != nil || n == 0 {
				unix.Shutdown(c2, unix.SHUT_WR)
				return errName(err)
			}
			if k, err := spliceAll(r, c2, n); k != n {
				return "short " + errName(err)
			}
		}
	})
	e.drain(s2)
	a.wait()
	b.wait()
}

func spliceTee(e *Env) {
	c, s := e.pair()
	r, w := e.pipe()
	r2, w2 := e.pipe()
	e.send(c, pattern(1, 3000), 0)
	e.settle()
	n, err := spliceAll(s, w, 3000)
	e.recRaw("splice out", n, err)
	k, err := unix.Tee(r, w2, 3000, 0)
	e.recRaw("tee", int(k), err)
	e.recvN(r, 3000)
	e.recvN(r2, 3000)
}

func spliceNothing(e *Env) {
	c, s := e.pair()
	r, w := e.pipe()
	x := e.later("nothing there, nonblocking pipe", func() string {
		n, err := splice(s, w, 100, unix.SPLICE_F_NONBLOCK)
		return fmt.Sprint(n, errName(err))
	})
	x.waiting()
	e.send(c, pattern(2, 10), 0)
	x.wait()
	e.recvN(r, 10)
	e.must("O_NONBLOCK", unix.SetNonblock(s, true))
	n, err := splice(s, w, 100, 0)
	e.recRaw("nothing there, nonblocking socket", n, err)
	n, err = splice(s, w, 0, 0)
	e.recRaw("splice of nothing", n, err)
	n, err = splice(r, c, 100, unix.SPLICE_F_NONBLOCK)
	e.recRaw("empty pipe", n, err)
	e.send(c, pattern(1, 10), 0)
	e.settle()
	n, err = splice(s, w, 100, unix.SPLICE_F_NONBLOCK)
	e.recRaw("data", n, err)
	e.recvN(r, 10)
}

func (e *Env) file(n int) (*os.File, []byte) {
	f, err := os.CreateTemp("", "shunttest")
	e.must("a temporary file", err)
	e.cleanup(func() { os.Remove(f.Name()); f.Close() })
	b := pattern(8, n)
	_, err = f.Write(b)
	e.must("write", err)
	return f, b
}

func sendFile(e *Env) {
	c, s := e.pair()
	f, b := e.file(1 << 20)
	x := e.later("sendfile", func() string {
		var off int64
		for off < int64(len(b)) {
			n, err := unix.Sendfile(c, int(f.Fd()), &off, len(b)-int(off))
			if err == unix.EINTR {
				continue
			}
			if err != nil || n == 0 {
				return errName(err)
			}
		}
		return "all"
	})
	e.recvN(s, len(b))
	x.wait()
	var off int64 = 100
	n, err := unix.Sendfile(c, int(f.Fd()), &off, 1000)
	e.recRaw("sendfile of a part", n, err)
	e.recvN(s, 1000)
}

func sendFileNonblocking(e *Env) {
	c, s := e.pair()
	f, b := e.file(8 << 20)
	e.must("O_NONBLOCK", unix.SetNonblock(c, true))
	x := e.later("sendfile", func() string {
		var off int64
		for off < int64(len(b)) {
			n, err := unix.Sendfile(c, int(f.Fd()), &off, len(b)-int(off))
			if err == unix.EAGAIN {
				if got := pollFor(c, unix.POLLOUT, 10000); got != "OUT" {
					return "no room came: " + got
				}
				continue
			}
			if err != nil || n == 0 {
				return errName(err)
			}
		}
		return "all"
	})
	e.recvN(s, len(b))
	x.wait()
}

// zeroCopy counts that every send is answered on the error queue once.
func zeroCopy(e *Env) {
	c, s := e.pair()
	if err := unix.SetsockoptInt(c, unix.SOL_SOCKET, unix.SO_ZEROCOPY, 1); err != nil {
		e.rec("SO_ZEROCOPY: %s", errName(err))
		return
	}
	b := pattern(1, 20000)
	sends := 10
	for i := 0; i < sends; i++ {
		n, err := unix.SendmsgN(c, b, nil, nil, unix.MSG_ZEROCOPY)
		if err != nil || n != len(b) {
			e.Fatalf("%s: zerocopy send: %d %v", e.kind.name, n, err)
		}
		e.recvN(s, len(b))
	}
	e.rec("notified: %d of %d", notified(e, c, sends), sends)
	e.send(c, b, 0)
	e.recvN(s, len(b))
}

func notified(e *Env, fd, want int) int {
	seen := 0
	eventually(3e9, func() string {
		oob := make([]byte, 512)
		_, n, _, _, err := unix.Recvmsg(fd, nil, oob, unix.MSG_ERRQUEUE|unix.MSG_DONTWAIT)
		if err == nil {
			ms, _ := unix.ParseSocketControlMessage(oob[:n])
			for _, m := range ms {
				ee := (*unix.SockExtendedErr)(unsafe.Pointer(&m.Data[0]))
				seen += int(ee.Data-ee.Info) + 1
			}
		}
		if seen < want {
			return "waiting"
		}
		return ""
	})
	return seen
}

// conn gives fd to Go's net package; closing the conn closes fd.
func (e *Env) conn(fd int) *net.TCPConn {
	d, err := unix.Dup(fd)
	e.must("dup", err)
	e.drop(fd)
	f := os.NewFile(uintptr(d), "socket")
	c, err := net.FileConn(f)
	e.must("FileConn", err)
	f.Close()
	return c.(*net.TCPConn)
}

func goCopy(e *Env) {
	a1, a2 := e.pair()
	b1, b2 := e.pair()
	in, from, to, out := e.conn(a1), e.conn(a2), e.conn(b1), e.conn(b2)
	want := pattern(1, 3<<20)
	go func() { in.Write(want); in.CloseWrite() }()
	copied := make(chan error, 1)
	go func() {
		_, err := io.Copy(to, from) // splice(2), socket to socket
		to.CloseWrite()
		copied <- err
	}()
	got, err := io.ReadAll(out)
	e.rec("copied %v %v, right: %v", err, <-copied, bytes.Equal(got, want))
	for _, c := range []net.Conn{in, from, to, out} {
		c.Close()
	}
}

func spliceSinkGone(e *Env) {
	c, s := e.pair()
	r, w := e.pipe()
	e.send(c, pattern(1, 100), 0)
	e.settle()
	e.drop(r)
	n, err := splice(s, w, 100, 0)
	e.recRaw("splice to a dead pipe", n, err)
	e.signals()
	e.recvN(s, 100)
}

func spliceMixed(e *Env) {
	c, s := e.pair()
	r, w := e.pipe()
	e.must("write", writeAll(c, pattern(1, 30000)))
	e.settle()
	e.recvN(s, 1000)
	n, err := spliceAll(s, w, 9000)
	e.recRaw("splice out", n, err)
	e.recvN(r, 9000)
	e.recvN(s, 10000)
	n, err = spliceAll(s, w, 10000)
	e.recRaw("splice out", n, err)
	e.recvN(r, 10000)
}
