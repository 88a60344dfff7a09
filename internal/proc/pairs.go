// SPDX-License-Identifier: GPL-2.0

// The joined connections. The module writes a line an end; here the two ends
// of a pair come together.
//
// Neighbours: owners.go (who has an end's socket).

package proc

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// End is one end of a joined connection. Bytes are those it sent.
type End struct {
	Pair      string
	Active    bool // it connected; the other one accepted
	NetNS     uint64
	Inode     uint64 // 0: not accepted yet, or already orphaned
	Local     string
	Remote    string
	RingBytes uint64
	TCPBytes  uint64
	Fallback  string // last reason a byte went by TCP, "-" for none
	RingSize  uint64 // 0: not allocated yet
	SpinUs    uint64
}

// Pair is one joined connection; an end that has left is nil.
type Pair struct {
	ID     string
	Client *End
	Server *End
}

// ReadPairs reads the joined connections.
func ReadPairs() ([]Pair, error) {
	f, err := open("pairs")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return parsePairs(f)
}

var pairFields = []string{"pair", "end", "netns", "inode", "local", "remote",
	"ring_bytes", "tcp_bytes", "fallback", "ring_size", "spin_us"}

// parsePairs finds columns by their header, so that a newer module may add some.
func parsePairs(in io.Reader) ([]Pair, error) {
	lines := bufio.NewScanner(in)
	if !lines.Scan() {
		return nil, lines.Err()
	}
	columns := strings.Fields(lines.Text())
	if err := checkColumns(columns); err != nil {
		return nil, err
	}
	var pairs []Pair
	index := map[string]int{}
	for lines.Scan() {
		words := strings.Fields(lines.Text())
		if len(words) == 0 {
			continue
		}
		end, err := parseEnd(columns, words)
		if err != nil {
			return nil, err
		}
		pairs = addEnd(pairs, index, end)
	}
	return pairs, lines.Err()
}

func checkColumns(columns []string) error {
	have := map[string]bool{}
	for _, c := range columns {
		have[c] = true
	}
	for _, name := range pairFields {
		if !have[name] {
			return fmt.Errorf("%s/pairs has no column %s: the module is of another version than this command", dir, name)
		}
	}
	return nil
}

func parseEnd(columns, words []string) (*End, error) {
	if len(words) < len(columns) {
		return nil, fmt.Errorf("%s/pairs: a line has %d columns instead of %d", dir, len(words), len(columns))
	}
	row := map[string]string{}
	for i, c := range columns {
		row[c] = words[i]
	}
	e := &End{Pair: row["pair"], Active: row["end"] == "0", Local: row["local"], Remote: row["remote"], Fallback: row["fallback"]}
	for name, to := range map[string]*uint64{
		"netns": &e.NetNS, "inode": &e.Inode, "ring_bytes": &e.RingBytes,
		"tcp_bytes": &e.TCPBytes, "ring_size": &e.RingSize, "spin_us": &e.SpinUs,
	} {
		n, err := strconv.ParseUint(row[name], 10, 64)
		if err != nil {
			return nil, fmt.Errorf("%s/pairs: %s %q is not a number", dir, name, row[name])
		}
		*to = n
	}
	return e, nil
}

func addEnd(pairs []Pair, index map[string]int, e *End) []Pair {
	at, known := index[e.Pair]
	if !known {
		at = len(pairs)
		index[e.Pair] = at
		pairs = append(pairs, Pair{ID: e.Pair})
	}
	if e.Active {
		pairs[at].Client = e
	} else {
		pairs[at].Server = e
	}
	return pairs
}
