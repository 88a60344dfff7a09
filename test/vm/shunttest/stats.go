// SPDX-License-Identifier: GPL-2.0

// The module's counters and pairs as it shows them in /proc/tcp_shunt, and the
// check that nothing is left behind.
package main

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

type counters map[string]int64

func readCounters() counters {
	c := counters{}
	b, err := os.ReadFile("/proc/tcp_shunt/stats")
	if err != nil {
		return c
	}
	sc := bufio.NewScanner(bytes.NewReader(b))
	for sc.Scan() {
		f := strings.Fields(sc.Text())
		if len(f) == 2 {
			c[f[0]], _ = strconv.ParseInt(f[1], 10, 64)
		}
	}
	return c
}

// since is how far a counter moved from before to c.
func (c counters) since(before counters, name string) int64 { return c[name] - before[name] }

// tcpBytes sums the bytes that joined sockets sent by TCP, for any reason.
func (c counters) tcpBytes() (sum int64) {
	for k, v := range c {
		if strings.HasPrefix(k, "tcp_bytes_") {
			sum += v
		}
	}
	return sum
}

// why lists the reasons that moved, to explain a low share of the ring.
func (c counters) why(before counters) string {
	var out []string
	for k := range c {
		if strings.HasPrefix(k, "tcp_bytes_") || strings.HasPrefix(k, "refused_") {
			if d := c.since(before, k); d != 0 {
				out = append(out, fmt.Sprintf("%s=%d", k, d))
			}
		}
	}
	return strings.Join(out, " ")
}

// share is the part of the joined sockets' bytes that went through rings.
func share(before, after counters) float64 {
	ring := float64(after.since(before, "ring_bytes"))
	tcp := float64(after.tcpBytes() - before.tcpBytes())
	if ring+tcp == 0 {
		return 0
	}
	return ring / (ring + tcp)
}

// pairEnd is one line of /proc/tcp_shunt/pairs.
type pairEnd struct {
	pair, end, netns, inode, local, remote, fallback string
	ring, tcp                                        int64
}

func readPairs() []pairEnd {
	b, _ := os.ReadFile("/proc/tcp_shunt/pairs")
	var out []pairEnd
	for i, line := range strings.Split(string(b), "\n") {
		f := strings.Fields(line)
		if i == 0 || len(f) < 9 {
			continue
		}
		p := pairEnd{pair: f[0], end: f[1], netns: f[2], inode: f[3], local: f[4], remote: f[5], fallback: f[8]}
		p.ring, _ = strconv.ParseInt(f[6], 10, 64)
		p.tcp, _ = strconv.ParseInt(f[7], 10, 64)
		out = append(out, p)
	}
	return out
}

// modUseCount is the module's reference count, -1 if it is not loaded.
func modUseCount() int {
	b, err := os.ReadFile("/sys/module/tcp_shunt/refcnt")
	if err != nil {
		return -1
	}
	n, _ := strconv.Atoi(strings.TrimSpace(string(b)))
	return n
}

// leaks says what the module holds more than before a test: offers may take two
// seconds to expire and pairs a grace period, so it waits a little.
func leaks(before counters, useBefore int) string {
	if modUseCount() < 0 {
		return ""
	}
	return eventually(5*time.Second, func() string {
		c := readCounters()
		var left []string
		for _, k := range []string{"joined", "pairs_held", "rings", "ring_memory", "offers_pending"} {
			if v, ok := c[k]; !ok || v > before[k] {
				left = append(left, fmt.Sprintf("%s=%d", k, v))
			}
		}
		if n := modUseCount(); useBefore >= 0 && n > useBefore {
			left = append(left, fmt.Sprintf("module use count %d, was %d", n, useBefore))
		}
		return strings.Join(left, " ")
	})
}

const ringSizeParam = "/sys/module/tcp_shunt/parameters/ring_size"

// setRingSize changes the size of rings allocated from now on.
func setRingSize(n int) error {
	return os.WriteFile(ringSizeParam, []byte(strconv.Itoa(n)), 0o644)
}
