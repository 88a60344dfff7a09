// SPDX-License-Identifier: GPL-2.0

// Random sequences of calls on both ends of a connection, one after another,
// each answer compared with plain TCP's. The seed makes a sequence again.
// Neighbours: input.go and close.go, the same calls with a purpose.
package main

import (
	"fmt"
	"math/rand"
	"time"

	"golang.org/x/sys/unix"
)

func init() {
	both("fuzz/sequences", fuzzSequences).within(4 * time.Minute)
}

func fuzzSequences(t *T) {
	for i := 0; i < scaled(60); i++ {
		seed := opt.seed + int64(i)
		t.where = func() string { return fmt.Sprintf("sequence of seed %d", seed) }
		if bad := compareOnce(t, func(e *Env) { fuzz(e, seed) }); bad != "" {
			t.Fatalf("seed %d: %s (again with -seed %d -scale 0.01)", seed, bad, seed)
		}
	}
}

// compareOnce is compare, returning the difference with the steps before it.
func compareOnce(t *T, fn func(*Env)) string {
	want := side(t, plainWarm, "4", fn)
	others := []kind{joinedWarm, joinedTiny}
	if opt.plain {
		others = []kind{plainWarm, plainFresh}
	}
	for _, k := range others {
		got := side(t, k, "4", fn)
		if d := firstDifference(want, got); d != "" {
			for i, line := range got {
				fmt.Printf("    %d %s\n", i, line)
				if i >= len(want) || want[i] != line {
					break
				}
			}
			return k.name + ": " + d
		}
	}
	return ""
}

func fuzz(e *Env, seed int64) {
	rng := rand.New(rand.NewSource(seed))
	c, s := e.pair()
	under := map[int]int{} // bytes sent and not read, per sender: within any window
	ends := [2]int{c, s}
	for step := 0; step < 60; step++ {
		who := rng.Intn(2)
		fd, peer := ends[who], ends[1-who]
		n := 1 + rng.Intn([]int{10, 600, 5000, 9000}[rng.Intn(4)])
		switch op := rng.Intn(100); {
		case op < 35:
			if under[fd] > 30000 {
				continue
			}
			k, err := unix.SendmsgN(fd, pattern(byte(step), n), nil, nil, unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL)
			under[fd] += max(k, 0)
			e.rec("%s send %d: %d %s", e.nameOf(fd), n, max(k, 0), errName(err))
			time.Sleep(2 * time.Millisecond)
		case op < 65:
			under[peer] -= e.recvUpTo(fd, n, 0)
		case op < 70:
			e.recvUpTo(fd, n, unix.MSG_PEEK)
		case op < 75:
			under[peer] -= e.recvUpTo(fd, n, unix.MSG_TRUNC)
		case op < 83:
			e.poll(fd)
		case op < 91:
			e.ioctl(fd, "FIONREAD", unix.TIOCINQ)
		case op < 93:
			unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVLOWAT, 1+n/4)
		case op < 95:
			e.soError(fd)
		case op < 96:
			e.shutdown(fd, unix.SHUT_WR)
			time.Sleep(2 * time.Millisecond)
		case op < 97 && step > 30:
			e.shutdown(fd, rng.Intn(3))
			time.Sleep(2 * time.Millisecond)
		case op < 98:
			if under[fd] < 30000 {
				k, err := unix.SendmsgN(fd, pattern(byte(step), 3), nil, nil, unix.MSG_OOB|unix.MSG_NOSIGNAL)
				under[fd] += max(k, 0)
				e.rec("%s send urgent: %d %s", e.nameOf(fd), max(k, 0), errName(err))
				time.Sleep(2 * time.Millisecond)
			}
		default:
			e.recv(fd, 1, unix.MSG_OOB|unix.MSG_DONTWAIT)
		}
	}
	e.fuzzEnd(rng, ends)
}

// recvUpTo reads until n bytes, or there is no more now: one read may stop short
// where the bytes change their way. Peeking is one call.
func (e *Env) recvUpTo(fd, n, flags int) int {
	var all []byte
	b := make([]byte, n)
	for {
		k, _, err := unix.Recvfrom(fd, b[:n-len(all)], flags|unix.MSG_DONTWAIT)
		if k > 0 && flags&unix.MSG_TRUNC != 0 {
			clear(b[:k]) // discarded, not copied
		}
		all = append(all, b[:max(k, 0)]...)
		if err != nil || k == 0 || len(all) == n || flags&unix.MSG_PEEK != 0 {
			e.rec("%s recv %d flags %#x: %s %s %v", e.nameOf(fd), n, flags, hash(all), errName(err), k == 0)
			return len(all)
		}
	}
}

func (e *Env) fuzzEnd(rng *rand.Rand, ends [2]int) {
	who := rng.Intn(2)
	fd, peer := ends[who], ends[1-who]
	if rng.Intn(3) == 0 {
		e.linger(fd, 1, 0)
	}
	e.close(fd)
	e.poll(peer)
	for i := 0; i < 3; i++ {
		e.recvUpTo(peer, 100000, 0)
	}
	e.soError(peer)
	k, err := unix.SendmsgN(peer, []byte("x"), nil, nil, unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL)
	e.rec("send at last: %d %s", max(k, 0), errName(err))
}
