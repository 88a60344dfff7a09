// SPDX-License-Identifier: GPL-2.0

// Many connections: 1,000 of them in waves, messages of 1 B to 1 MiB in both
// directions, by blocking and nonblocking calls, poll, and epoll by level and
// by edge, over IPv4, IPv6 and v4-mapped addresses. Every byte is compared.
package main

import (
	"bytes"
	"fmt"
	"math"
	"math/rand"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

func init() {
	both("traffic/1000-connections", mixedTraffic).within(8 * time.Minute)
	joinedOnly("traffic/request-response", requestShare).within(4 * time.Minute)
	both("traffic/churn", churn).within(4 * time.Minute)
}

const biggest = 1 << 20

// wire is one end of a connection and how it does its calls.
type wire struct {
	fd    int
	mode  string // blocking, poll, level, edge
	ep    int
	armed uint32
}

var modes = []string{"blocking", "poll", "level", "edge"}

func newWire(e *Env, fd int, mode string) *wire {
	w := &wire{fd: fd, mode: mode, ep: -1}
	if mode == "blocking" {
		return w
	}
	e.must("O_NONBLOCK", unix.SetNonblock(fd, true))
	switch mode {
	case "level":
		w.ep = e.epoll(fd, 0)
	case "edge":
		w.ep = e.epoll(fd, unix.EPOLLIN|unix.EPOLLOUT|unix.EPOLLRDHUP|unix.EPOLLET)
	}
	return w
}

// wait is entered only after the call in question said EAGAIN.
func (w *wire) wait(events uint32) error {
	var got string
	switch w.mode {
	case "poll":
		got = pollFor(w.fd, int16(events), 30000)
	case "level":
		if w.armed != events {
			ev := unix.EpollEvent{Events: events, Fd: int32(w.fd)}
			if err := unix.EpollCtl(w.ep, unix.EPOLL_CTL_MOD, w.fd, &ev); err != nil {
				return err
			}
			w.armed = events
		}
		got = next(w.ep, 30000)
	case "edge":
		got = next(w.ep, 30000)
	}
	if got == "nothing" {
		return fmt.Errorf("%s: no event in 30 s, waiting for %s; now %s", w.mode, events2s(events), pollNow(w.fd))
	}
	return nil
}

// bytesMoved counts what was read and compared.
var bytesMoved atomic.Int64

// pump sends out and reads len(in) bytes that must equal in, both at once.
func (w *wire) pump(out, in []byte) error {
	bytesMoved.Add(int64(len(in)))
	if w.mode == "blocking" {
		return w.pumpBlocking(out, in)
	}
	buf := make([]byte, 64<<10)
	for len(out) > 0 || len(in) > 0 {
		var want uint32
		if len(out) > 0 {
			n, err := unix.Write(w.fd, out)
			if err == unix.EAGAIN {
				want |= unix.EPOLLOUT
			} else if err != nil && err != unix.EINTR {
				return fmt.Errorf("%s: write: %v", w.mode, err)
			}
			out = out[max(n, 0):]
		}
		if len(in) > 0 {
			n, err := unix.Read(w.fd, buf[:min(len(buf), len(in))])
			if err == unix.EAGAIN {
				want |= unix.EPOLLIN
			} else if err != nil && err != unix.EINTR || n == 0 {
				return fmt.Errorf("%s: read: %d %v", w.mode, n, err)
			}
			n = max(n, 0)
			if !bytes.Equal(buf[:n], in[:n]) {
				return fmt.Errorf("%s: wrong bytes, %d before the end", w.mode, len(in))
			}
			in = in[n:]
		}
		idle := (len(out) == 0 || want&unix.EPOLLOUT != 0) && (len(in) == 0 || want&unix.EPOLLIN != 0)
		if idle && want != 0 {
			if err := w.wait(want); err != nil {
				return err
			}
		}
	}
	return nil
}

func (w *wire) pumpBlocking(out, in []byte) error {
	sent := make(chan error, 1)
	if len(in) == 0 {
		return writeAll(w.fd, out)
	}
	if len(out) > 0 {
		go func() { sent <- writeAll(w.fd, out) }()
	} else {
		sent <- nil
	}
	buf := make([]byte, 64<<10)
	for len(in) > 0 {
		n, err := unix.Read(w.fd, buf[:min(len(buf), len(in))])
		if err == unix.EINTR {
			continue
		}
		if err != nil || n == 0 {
			return fmt.Errorf("blocking: read: %d %v", n, err)
		}
		if !bytes.Equal(buf[:n], in[:n]) {
			return fmt.Errorf("blocking: wrong bytes, %d before the end", len(in))
		}
		in = in[n:]
	}
	return <-sent
}

// source gives messages of random sizes, as many small ones as large.
type source struct {
	rng     *rand.Rand
	block   []byte
	largest int
}

func (s *source) message() []byte {
	n := int(math.Exp2(s.rng.Float64() * math.Log2(float64(s.largest))))
	at := s.rng.Intn(len(s.block) - n)
	return s.block[at : at+n]
}

func (s *source) messages(n int) (all []byte) {
	for i := 0; i < n; i++ {
		all = append(all, s.message()...)
	}
	return all
}

func mixedTraffic(t *T) {
	k := joinedFresh
	if opt.plain {
		k = plainFresh
	}
	total, wave := scaled(1000), 20
	start := readCounters()
	for i := 0; i < total; i += wave {
		w := newWave(t, k, i, min(wave, total-i), biggest)
		w.talk(func(c *connection) error { return c.requests(4) })
		w.talk(func(c *connection) error { return c.duplex(2) })
		w.env.closeAll()
	}
	t.Note("%d connections, %d MiB", total, bytesMoved.Load()>>20)
	if opt.plain {
		return
	}
	end := readCounters()
	t.Note("%.1f%% by ring; %s", 100*share(start, end), end.why(start))
	if n := end.since(start, "joins"); n != int64(total) {
		t.Fatalf("%d of %d connections were joined", n, total)
	}
}

// requestShare measures how much of request/response goes by ring, for each way
// of calling and for messages that fit a ring and that do not. Those that fit
// must; larger ones must once rings are made large enough for them.
func requestShare(t *T) {
	var bad []string
	for _, x := range []struct {
		largest, ring int
		must          bool
	}{{32 << 10, 64 << 10, true}, {biggest, 64 << 10, false}, {biggest, 2 << 20, true}} {
		for m, mode := range modes {
			k := kind{"joined", true, false, x.ring}
			before := readCounters()
			n := scaled(24)
			for i := 0; i < n; i += 4 {
				w := newWave(t, k, 16*3*i+3*m, 1, x.largest)
				w.cs[0].s = newWire(w.env, w.cs[0].s.fd, mode)
				w.talk(func(c *connection) error { return c.requests(20) })
				w.env.closeAll()
			}
			after := readCounters()
			part := share(before, after)
			t.Note("up to %d KiB, rings of %d KiB, %s: %.1f%% by ring %s", x.largest>>10, x.ring>>10, mode, 100*part, after.why(before))
			if x.must && part < 0.9 {
				bad = append(bad, fmt.Sprintf("up to %d KiB, rings of %d KiB, %s: %.1f%%", x.largest>>10, x.ring>>10, mode, 100*part))
			}
		}
	}
	if len(bad) > 0 {
		t.Fatalf("less than 90%% by ring: %s", strings.Join(bad, "; "))
	}
}

type connection struct {
	c, s         *wire
	src          *source
	number, seed int64
}

var randomBlock = sync.OnceValue(func() []byte {
	b := make([]byte, 2*biggest)
	rand.New(rand.NewSource(opt.seed)).Read(b)
	return b
})

type trafficWave struct {
	*T
	env *Env
	cs  []*connection
}

// newWave opens connections first to first+n; the number of a connection decides
// its family, its ends' ways of calling and its messages.
func newWave(t *T, k kind, first, n, largest int) *trafficWave {
	w := &trafficWave{T: t}
	fams := []string{"4", "6", "mapped"}
	w.env = newEnv(t, k, "4")
	w.env.enter()
	for i := first; i < first+n; i++ {
		w.env.fam = fams[i%3]
		c, s := w.env.pair()
		src := &source{rand.New(rand.NewSource(opt.seed + int64(i)*7919)), randomBlock(), largest}
		mode := i / 3
		w.cs = append(w.cs, &connection{number: int64(i), src: src,
			c: newWire(w.env, c, modes[mode%4]), s: newWire(w.env, s, modes[(mode/4+i)%4])})
	}
	return w
}

func (w *trafficWave) talk(fn func(*connection) error) {
	for _, c := range w.cs {
		w.Go(func() error {
			if err := fn(c); err != nil {
				return fmt.Errorf("connection %d (%s/%s, seed %d): %w", c.number, c.c.mode, c.s.mode, opt.seed, err)
			}
			return nil
		})
	}
	w.Wait()
}

// both runs the two ends and returns the first error.
func (c *connection) both(client, server func() error) error {
	done := make(chan error, 1)
	go func() { done <- server() }()
	if err := client(); err != nil {
		return fmt.Errorf("client: %w", err)
	}
	if err := <-done; err != nil {
		return fmt.Errorf("server: %w", err)
	}
	return nil
}

func (c *connection) requests(rounds int) error {
	var ask, answer [][]byte
	for i := 0; i < rounds; i++ {
		ask, answer = append(ask, c.src.message()), append(answer, c.src.message())
	}
	return c.both(func() error {
		for i := range ask {
			if err := c.c.pump(ask[i], nil); err != nil {
				return err
			}
			if err := c.c.pump(nil, answer[i]); err != nil {
				return err
			}
		}
		return nil
	}, func() error {
		for i := range ask {
			if err := c.s.pump(nil, ask[i]); err != nil {
				return err
			}
			if err := c.s.pump(answer[i], nil); err != nil {
				return err
			}
		}
		return nil
	})
}

func (c *connection) duplex(messages int) error {
	up, down := c.src.messages(messages), c.src.messages(messages)
	return c.both(func() error { return c.c.pump(up, down) }, func() error { return c.s.pump(down, up) })
}

// churn opens and closes connections from several threads; most carry one
// request, some nothing at all.
func churn(t *T) {
	k := joinedFresh
	if opt.plain {
		k = plainFresh
	}
	e := newEnv(t, k, "4")
	e.enter()
	l, sa := e.listen()
	per, threads := scaled(400), 4
	t.Go(func() error {
		for i := 0; i < per*threads; i++ {
			s, _, err := unix.Accept4(l, unix.SOCK_CLOEXEC)
			if err != nil {
				return err
			}
			b := make([]byte, 2000)
			if n, err := unix.Read(s, b); err == nil && n > 0 {
				writeAll(s, b[:n])
			}
			unix.Close(s)
		}
		return nil
	})
	for i := 0; i < threads; i++ {
		t.Go(func() error {
			for n := 0; n < per; n++ {
				if err := oneRequest(sa, n); err != nil {
					return fmt.Errorf("connection %d: %w", n, err)
				}
			}
			return nil
		})
	}
	t.Wait()
	e.closeAll()
}

func oneRequest(sa unix.Sockaddr, n int) error {
	c, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(c)
	if err := unix.Connect(c, sa); err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	switch n % 8 {
	case 0:
		return nil
	case 1:
		unix.SetsockoptLinger(c, unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1})
		return nil
	}
	want := pattern(byte(n), 1+n%1400)
	if err := writeAll(c, want); err != nil {
		return fmt.Errorf("write: %w", err)
	}
	got := make([]byte, len(want))
	if err := readExactly(c, got); err != nil {
		return err
	}
	if !bytes.Equal(got, want) {
		return fmt.Errorf("wrong bytes")
	}
	return nil
}
