// SPDX-License-Identifier: GPL-2.0

// shunt list: the joined connections, a line an end.
//
// Neighbours: internal/proc (pairs and their owners).

package main

import (
	"errors"
	"os"

	"shunt.dev/shunt/internal/proc"
	"shunt.dev/shunt/internal/table"
)

const listHelp = `Usage: shunt list [--json]

Shows the joined connections, a line an end: the client, which connected, and
the server below it. SENT BY RING and BY TCP are the bytes that this end sent
since it was joined; FALLBACK is the last reason why a byte went by TCP. The
process is known where root may see it; + marks a socket that several share.

Example:
  shunt list --json | jq '.[] | select(.client.process.name == "redis-cli")'
`

type pairResult struct {
	Pair   string     `json:"pair"`
	Client *endResult `json:"client"` // null: this end has left
	Server *endResult `json:"server"`
}

type endResult struct {
	Local     string         `json:"local"`
	Remote    string         `json:"remote"`
	Process   *processResult `json:"process"` // null: not known
	Inode     uint64         `json:"inode"`
	NetNS     uint64         `json:"netns"`
	RingBytes uint64         `json:"ring_bytes"`
	TCPBytes  uint64         `json:"tcp_bytes"`
	Fallback  string         `json:"fallback"` // empty: none
	RingSize  uint64         `json:"ring_size"`
	SpinUs    uint64         `json:"spin_us"`

	owner string
}

type processResult struct {
	PID    int    `json:"pid"`
	Name   string `json:"name"`
	Shared bool   `json:"shared"`
}

func list(args []string) error {
	f := newFlags("list")
	if err := f.parseOnly(args); err != nil {
		return err
	}
	pairs, err := proc.ReadPairs()
	notLoaded := errors.Is(err, proc.ErrNotLoaded)
	if errors.Is(err, os.ErrPermission) {
		return needRoot()
	}
	if err != nil && !notLoaded {
		return err
	}
	results := pairResults(pairs)
	if f.json {
		return printJSON(results)
	}
	switch {
	case notLoaded:
		say("nothing is joined: the module is not loaded")
	case len(results) == 0:
		say("nothing is joined now")
	default:
		return showPairs(results)
	}
	return nil
}

func pairResults(pairs []proc.Pair) []pairResult {
	inodes := map[uint64]bool{}
	for _, p := range pairs {
		for _, e := range []*proc.End{p.Client, p.Server} {
			if e != nil && e.Inode != 0 {
				inodes[e.Inode] = true
			}
		}
	}
	owners := proc.Owners("/proc", inodes)
	results := []pairResult{}
	for _, p := range pairs {
		results = append(results, pairResult{p.ID, newEnd(p.Client, owners), newEnd(p.Server, owners)})
	}
	return results
}

func newEnd(e *proc.End, owners map[uint64]proc.Owner) *endResult {
	if e == nil {
		return nil
	}
	r := &endResult{
		Local: e.Local, Remote: e.Remote, Inode: e.Inode, NetNS: e.NetNS,
		RingBytes: e.RingBytes, TCPBytes: e.TCPBytes, RingSize: e.RingSize, SpinUs: e.SpinUs,
		owner: "-",
	}
	if e.Fallback != "-" {
		r.Fallback = e.Fallback
	}
	if owner, known := owners[e.Inode]; known {
		r.Process = &processResult{owner.PID, owner.Name, owner.Shared}
		r.owner = owner.String()
	}
	return r
}

func showPairs(results []pairResult) error {
	var t table.Table
	t.Row("PAIR", "END", "PROCESS", "LOCAL", "REMOTE", "SENT BY RING", "BY TCP", "FALLBACK")
	for _, p := range results {
		addEnd(&t, p.Pair, "client", p.Client)
		addEnd(&t, p.Pair, "server", p.Server)
	}
	if err := t.Write(os.Stdout); err != nil {
		return err
	}
	say("%s joined", table.Count(uint64(len(results)), "connection"))
	return nil
}

func addEnd(t *table.Table, pair, end string, e *endResult) {
	if e == nil {
		t.Row(pair, end, "(left)")
		return
	}
	fallback := e.Fallback
	if fallback == "" {
		fallback = "-"
	}
	t.Row(pair, end, e.owner, e.Local, e.Remote, table.Bytes(e.RingBytes), table.Bytes(e.TCPBytes), fallback)
}
