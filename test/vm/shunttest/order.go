// SPDX-License-Identifier: GPL-2.0

// The order of the stream under every mix of ring and TCP: small rings, slow
// readers, writers that fill both directions, several threads on one socket.
// Neighbour: traffic.go, many connections.
package main

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

func init() {
	each("order/both-write-1MiB-first", bothWriteFirst)
	each("order/slow-reader", slowReader)
	each("order/slow-reader-nonblocking", slowReaderNonblocking)
	each("order/bursts-and-pauses", burstsAndPauses)
	each("order/changing-flags", changingFlags)
	each("order/several-senders", severalSenders).within(3 * time.Minute)
	each("order/several-receivers", severalReceivers).within(3 * time.Minute)
	each("order/several-both", severalBoth).within(3 * time.Minute)
	each("order/reader-waits-before-the-join", readerWaitsFirst)
	each("order/data-in-flight-at-the-join", inFlightAtJoin)
}

// each runs fn over plain TCP and over joined sockets with every ring size; a
// failure on plain TCP means that the test is wrong.
func each(name string, fn func(*Env)) *test {
	return both(name, func(t *T) {
		kinds := []kind{plainWarm}
		if !opt.plain {
			kinds = append(kinds, kind{"joined, 4 KiB rings", true, true, 4096},
				kind{"joined, fresh, 4 KiB rings", true, false, 4096}, joinedWarm,
				kind{"joined, 1 MiB rings", true, true, 1 << 20})
		}
		for _, k := range kinds {
			side(t, k, "4", fn)
		}
	})
}

func bothWriteFirst(e *Env) {
	c, s := e.pair()
	size := 1 << 20
	for _, fd := range []int{c, s} {
		e.Go(func() error { return writeAll(fd, pattern(byte(fd-c), size)) })
	}
	e.Wait() // both have written all of it; nobody has read
	for fd, from := range map[int]int{c: s, s: c} {
		got := make([]byte, size)
		e.must("read", readExactly(fd, got))
		e.same("1 MiB", got, pattern(byte(from-c), size))
	}
}

func (e *Env) same(what string, got, want []byte) {
	for i := range want {
		if got[i] != want[i] {
			e.Fatalf("%s: %s: byte %d of %d is wrong", e.kind.name, what, i, len(want))
		}
	}
}

// stream reads n bytes with pause after each read and checks every one.
func (e *Env) stream(fd int, tag byte, n, chunk int, pause func(i int)) error {
	want := pattern(tag, n)
	b := make([]byte, chunk)
	for i, at := 0, 0; at < n; i++ {
		k, err := unix.Read(fd, b[:min(chunk, n-at)])
		if err == unix.EINTR {
			continue
		}
		if err == unix.EAGAIN {
			pollFor(fd, unix.POLLIN, 10000)
			continue
		}
		if err != nil || k == 0 {
			return fmt.Errorf("%s: after %d of %d bytes: %d %v", e.kind.name, at, n, k, err)
		}
		if at+k > n || string(b[:k]) != string(want[at:at+k]) {
			return fmt.Errorf("%s: wrong bytes after %d", e.kind.name, at)
		}
		at += k
		pause(i)
	}
	return nil
}

func slowReader(e *Env) {
	c, s := e.pair()
	n := scaled(2 << 20)
	e.Go(func() error { return writeAll(c, pattern(1, n)) })
	e.Go(func() error {
		return e.stream(s, 1, n, 10000, func(i int) {
			if i%20 == 0 {
				time.Sleep(10 * time.Millisecond)
			}
		})
	})
	e.Wait()
}

// writeNonblocking is a writer that polls whenever there is no room.
func writeNonblocking(fd int, b []byte, chunk int) error {
	for len(b) > 0 {
		n, err := unix.SendmsgN(fd, b[:min(chunk, len(b))], nil, nil, unix.MSG_DONTWAIT)
		switch {
		case err == unix.EAGAIN:
			if got := pollFor(fd, unix.POLLOUT, 20000); got != "OUT" {
				return fmt.Errorf("waiting for room: poll says %s", got)
			}
		case err == unix.EINTR:
		case err != nil:
			return err
		default:
			b = b[n:]
		}
	}
	return nil
}

func slowReaderNonblocking(e *Env) {
	c, s := e.pair()
	n := scaled(4 << 20)
	e.Go(func() error { return writeNonblocking(c, pattern(1, n), 7000) })
	e.Go(func() error {
		return e.stream(s, 1, n, 20000, func(i int) {
			if i%50 == 0 {
				time.Sleep(10 * time.Millisecond)
			}
		})
	})
	e.Wait()
}

// burstsAndPauses overflows the ring, lets it run dry, and again: the stream
// goes to TCP and comes back many times.
func burstsAndPauses(e *Env) {
	c, s := e.pair()
	rounds, sizes := scaled(40), []int{1, 4095, 4096, 4097, 9000, 70000, 3, 150000}
	for i := 0; i < rounds; i++ {
		n := sizes[i%len(sizes)]
		e.Go(func() error { return writeNonblocking(c, pattern(byte(i), n), 4096+i) })
		e.Go(func() error { return e.stream(s, byte(i), n, 3000+i*100, func(int) {}) })
		e.Wait()
	}
}

func changingFlags(e *Env) {
	c, s := e.pair()
	n := scaled(1 << 20)
	all := pattern(1, n)
	e.Go(func() error {
		for at, i := 0, 0; at < n; i++ {
			flags := []int{0, unix.MSG_DONTWAIT, unix.MSG_MORE, unix.MSG_ZEROCOPY}[i%4]
			k, err := unix.SendmsgN(c, all[at:min(n, at+1+i*37%9000)], nil, nil, flags)
			if err == unix.EAGAIN {
				pollFor(c, unix.POLLOUT, 10000)
				continue
			}
			if err != nil && err != unix.EINTR {
				return err
			}
			at += max(k, 0)
		}
		return nil
	})
	e.Go(func() error {
		b := make([]byte, 8192)
		for at, i := 0, 0; at < n; i++ {
			flags := []int{0, unix.MSG_DONTWAIT, unix.MSG_PEEK, 0}[i%4]
			k, _, err := unix.Recvfrom(s, b[:1+i*53%8000], flags)
			if err == unix.EAGAIN || err == unix.EINTR {
				pollFor(s, unix.POLLIN, 10000)
				continue
			}
			if err != nil || k == 0 {
				return fmt.Errorf("%s: after %d: %d %v", e.kind.name, at, k, err)
			}
			if string(b[:k]) != string(all[at:at+k]) {
				return fmt.Errorf("%s: wrong bytes after %d, flags %#x", e.kind.name, at, flags)
			}
			if flags != unix.MSG_PEEK {
				at += k
			}
		}
		return nil
	})
	e.Wait()
}

// A record names its sender and place and carries its own checksum.
const recordSize = 512

func record(sender, seq int) []byte {
	b := pattern(byte(sender), recordSize)
	binary.LittleEndian.PutUint32(b, uint32(sender))
	binary.LittleEndian.PutUint32(b[4:], uint32(seq))
	binary.LittleEndian.PutUint32(b[8:], crc32.ChecksumIEEE(b[12:])^uint32(seq))
	return b
}

func checkRecord(b []byte) (sender, seq int, err error) {
	sender, seq = int(binary.LittleEndian.Uint32(b)), int(binary.LittleEndian.Uint32(b[4:]))
	if sender > 100 || string(b) != string(record(sender, seq)) {
		return 0, 0, fmt.Errorf("a record is mixed with others")
	}
	return sender, seq, nil
}

// credits keep what is under way small enough that plain TCP does not split a
// record either: it may when a sender has to wait for memory.
func severalSenders(e *Env) {
	c, s := e.pair()
	const senders, underWay = 4, 48
	per := scaled(1500)
	credit := make(chan bool, underWay)
	for i := 0; i < senders; i++ {
		e.Go(func() error {
			for n := 0; n < per; n++ {
				credit <- true
				if k, err := unix.Write(c, record(i, n)); err != nil || k != recordSize {
					return fmt.Errorf("%s: write: %d %v", e.kind.name, k, err)
				}
			}
			return nil
		})
	}
	e.Go(func() error {
		next := [senders]int{}
		b := make([]byte, recordSize)
		for n := 0; n < senders*per; n++ {
			if err := readExactly(s, b); err != nil {
				return err
			}
			who, seq, err := checkRecord(b)
			if err != nil || seq != next[who] {
				return fmt.Errorf("%s: record %d: sender %d number %d, expected %d: %v", e.kind.name, n, who, seq, next[who], err)
			}
			next[who]++
			<-credit
		}
		return nil
	})
	e.Wait()
}

// Several receivers share a stream: which reads what is open, but together they
// read every byte once.
func severalReceivers(e *Env) {
	c, s := e.pair()
	n := scaled(2 << 20)
	all := pattern(1, n)
	e.Go(func() error {
		err := writeAll(c, all)
		unix.Shutdown(c, unix.SHUT_WR)
		return err
	})
	e.countTogether(s, 4, all)
}

func (e *Env) countTogether(fd, readers int, all []byte) {
	var mu sync.Mutex
	var got, want [256]int
	for _, x := range all {
		want[x]++
	}
	for i := 0; i < readers; i++ {
		e.Go(func() error {
			var mine [256]int
			b := make([]byte, 500+i*3000)
			for {
				k, err := unix.Read(fd, b)
				if err == unix.EINTR {
					continue
				}
				if err != nil {
					return fmt.Errorf("%s: read: %v", e.kind.name, err)
				}
				if k == 0 {
					break
				}
				for _, x := range b[:k] {
					mine[x]++
				}
			}
			mu.Lock()
			defer mu.Unlock()
			for x := range mine {
				got[x] += mine[x]
			}
			return nil
		})
	}
	e.Wait()
	if got != want {
		e.Fatalf("%s: the receivers together did not read what was sent", e.kind.name)
	}
}

func severalBoth(e *Env) {
	c, s := e.pair()
	per := scaled(1 << 19)
	var senders sync.WaitGroup
	var all []byte
	for i := 0; i < 3; i++ {
		mine := pattern(byte(i), per)
		all = append(all, mine...)
		senders.Add(1)
		e.Go(func() error {
			defer senders.Done()
			if i == 0 {
				return writeNonblocking(c, mine, 3000)
			}
			return writeAll(c, mine)
		})
	}
	go func() { senders.Wait(); unix.Shutdown(c, unix.SHUT_WR) }()
	e.countTogether(s, 3, all)
}

// A reader already asleep in TCP's own receive when the socket is joined must
// still hear what then comes.
func readerWaitsFirst(e *Env) {
	if opt.trigger == "policy" && e.joined {
		readerWaitsThroughConnect(e)
		return
	}
	l, sa := e.listen()
	c := e.dial(sa)
	s := e.accept(l)
	for _, d := range [][2]int{{c, s}, {s, c}} {
		e.Go(func() error { return e.stream(d[0], 1, 1000, 400, func(int) {}) })
		e.settle()
		if d[0] == c {
			e.join(c, s)
		}
		e.must("write", writeAll(d[1], pattern(1, 1000)))
		e.Wait()
	}
	e.exchange(c, s)
}

// With the policy, sockets are joined before the application can read; the
// client may still read long before the server has accepted.
func readerWaitsThroughConnect(e *Env) {
	l, sa := e.listen()
	c := e.dial(sa)
	e.Go(func() error { return e.stream(c, 1, 1000, 400, func(int) {}) })
	e.settle()
	s := e.accept(l)
	e.must("write", writeAll(s, pattern(1, 1000)))
	e.Wait()
	e.exchange(c, s)
}

func inFlightAtJoin(e *Env) {
	l, sa := e.listen()
	c := e.dial(sa)
	e.must("write", writeAll(c, pattern(1, 20000)))
	s := e.accept(l)
	e.must("write", writeAll(s, pattern(2, 20000)))
	e.join(c, s)
	for i := 0; i < 4; i++ {
		e.Go(func() error { return writeAll(c, pattern(byte(3+i), 5000)) })
		e.Go(func() error { return writeAll(s, pattern(byte(13+i), 5000)) })
		e.Wait()
	}
	for fd, base := range map[int]byte{s: 0, c: 10} {
		first := byte(1)
		if fd == c {
			first = 2
		}
		e.must("stream", e.stream(fd, first, 20000, 3000, func(int) {}))
		for i := byte(0); i < 4; i++ {
			e.must("stream", e.stream(fd, base+3+i, 5000, 1000, func(int) {}))
		}
	}
	e.exchange(c, s) // all that was in flight is read: by ring now
}
