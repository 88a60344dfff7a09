// SPDX-License-Identifier: GPL-2.0

// Package proc reads what the module says under /proc/tcp_shunt, and who owns
// the sockets it speaks of.
//
//	stats.go    the counters
//	explain.go  what each counter means
//	pairs.go    the joined connections
//	owners.go   processes by socket inode
//
// Neighbours: cmd/shunt (status, list, stats).
package proc

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
)

const dir = "/proc/tcp_shunt"

// ErrNotLoaded says that the module is not there to ask.
var ErrNotLoaded = errors.New("the module tcp_shunt is not loaded: run shunt up, or modprobe tcp_shunt")

// Counter is one line of the stats file.
type Counter struct {
	Name  string
	Value uint64
}

// Stats are the counters in the module's order.
type Stats []Counter

// ReadStats reads the module's counters.
func ReadStats() (Stats, error) {
	f, err := open("stats")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return parseStats(f)
}

func open(name string) (*os.File, error) {
	f, err := os.Open(dir + "/" + name)
	if errors.Is(err, os.ErrNotExist) {
		return nil, ErrNotLoaded
	}
	return f, err
}

func parseStats(in io.Reader) (Stats, error) {
	var stats Stats
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		name, text, _ := strings.Cut(strings.TrimSpace(lines.Text()), " ")
		if name == "" {
			continue
		}
		value, err := strconv.ParseUint(strings.TrimSpace(text), 10, 64)
		if err != nil {
			return nil, fmt.Errorf("%s/stats: %q is not a counter", dir, lines.Text())
		}
		stats = append(stats, Counter{name, value})
	}
	return stats, lines.Err()
}

// Get is one counter's value, 0 if the module has none of that name.
func (s Stats) Get(name string) uint64 {
	for _, c := range s {
		if c.Name == name {
			return c.Value
		}
	}
	return 0
}

// Sum adds the counters whose names start so.
func (s Stats) Sum(prefix string) uint64 {
	var sum uint64
	for _, c := range s {
		if strings.HasPrefix(c.Name, prefix) {
			sum += c.Value
		}
	}
	return sum
}

// RingShare is the share of the bytes of joined sockets that went by ring;
// false where no byte was sent yet.
func (s Stats) RingShare() (float64, bool) {
	ring, tcp := s.Get("ring_bytes"), s.Sum("tcp_bytes_")
	if ring+tcp == 0 {
		return 0, false
	}
	return float64(ring) / float64(ring+tcp), true
}
