// SPDX-License-Identifier: GPL-2.0

// shunt up: put a policy in place.
//
// Neighbours: upflags.go (what the operator wrote), internal/bpfstate (does it).

package main

import (
	"fmt"
	"os"

	"shunt.dev/shunt/internal/bpfstate"
	"shunt.dev/shunt/internal/cgroup"
	"shunt.dev/shunt/internal/module"
	"shunt.dev/shunt/internal/policy"
	"shunt.dev/shunt/internal/table"
)

const upHelp = `Usage: shunt up --cgroup PATH [--cgroup PATH...] RULES [FLAG...]

Joins connections made from now on, where both ends are in one of the cgroups
and the rules allow it. Connections that exist already stay as they are. Loads
the module if it is installed. A policy that is in place is replaced. Nothing
keeps running: the policy stays until shunt down or the next boot.

Cgroups:
  --cgroup PATH       a cgroup v2 folder; a relative path starts at its mount
                      (system.slice/redis.service). May be given several times.
                      Groups below it are meant as well.
  --root-cgroup       the whole machine, which is refused without this flag

Rules, in the order given; the first one that matches decides, and what none
matches is not joined:
  --port LIST         allow these ports: 6379 or 80,8000-8010
  --all               allow every port
  --allow RULE        allow, by conditions: "port=5432 addr=10.0.0.0/8"
  --deny RULE         leave on plain TCP, by the same conditions
  --policy FILE       rules from a file, one a line: allow RULE or deny RULE

Conditions of a RULE:
  all                 every connection
  port=LIST           a port or range, or several with commas
  addr=PREFIX         an address or prefix, IPv4 or IPv6
  end=server|client|either   whose port and address: default either
  family=4|6          IPv4 (also over IPv6 sockets) or IPv6
  scope=loopback|any  this host to itself, or any pair of addresses
  busy-poll=TIME      spin so long for data before sleeping, at most 10ms

For allow rules that say nothing else (a deny reaches as far as it can):
  --scope SCOPE       loopback (default) or any: containers need any
  --busy-poll TIME    such as 50us; default: the socket's own setting

  --ring-size SIZE    ring memory a direction, 4K to 4M, for rings made from now
                      on (64K unless changed before)
  --dry-run           say what would be done, and do nothing
  --json              the result as JSON

Examples:
  shunt up --cgroup system.slice --port 6379
  shunt up --cgroup kubepods.slice --all --scope any --busy-poll 50us
  shunt up --root-cgroup --deny port=22 --allow "addr=127.0.0.0/8 port=1-1023"
  shunt up --cgroup app.slice --policy /etc/shunt/policy
`

func up(args []string) error {
	o, err := parseUp(args)
	if err != nil {
		return err
	}
	if o.dryRun {
		return o.showPlan()
	}
	if err := needRoot(); err != nil {
		return err
	}
	unlock, err := bpfstate.Lock()
	if err != nil {
		return err
	}
	defer unlock()
	if err := prepareModule(o); err != nil {
		return err
	}
	change, err := bpfstate.Apply(o.groups, o.rules)
	if err != nil {
		return err
	}
	return o.showDone(change)
}

func prepareModule(o upOptions) error {
	if err := bpfstate.CheckBpffs(); err != nil {
		return err
	}
	if err := module.Load(); err != nil {
		return err
	}
	if o.ringSize == 0 {
		return nil
	}
	return module.SetRingSize(o.ringSize)
}

// upResult is what --json shows.
type upResult struct {
	Cgroups  []string         `json:"cgroups"`
	Rules    []string         `json:"rules"`
	RingSize uint64           `json:"ring_size"`
	DryRun   bool             `json:"dry_run"`
	Change   *bpfstate.Change `json:"change,omitempty"`
}

func (o upOptions) result() upResult {
	r := upResult{Cgroups: paths(o.groups), Rules: texts(o.rules), RingSize: o.ringSize, DryRun: o.dryRun}
	if r.RingSize == 0 {
		r.RingSize = module.RingSize()
	}
	return r
}

func (o upOptions) showDone(change bpfstate.Change) error {
	if o.json {
		r := o.result()
		r.Change = &change
		return printJSON(r)
	}
	fmt.Printf("policy on: %s on %s; connections made from now on are joined\n",
		table.Count(uint64(len(o.rules)), "rule"), table.Count(uint64(len(o.groups)), "cgroup"))
	return nil
}

func (o upOptions) showPlan() error {
	if o.json {
		return printJSON(o.result())
	}
	if !module.Loaded() {
		fmt.Printf("would load the module %s\n", module.Name)
	}
	if o.ringSize != 0 {
		fmt.Printf("would set the ring size to %s\n", table.Bytes(o.ringSize))
	}
	if bpfstate.Exists() {
		fmt.Println("would replace the policy in place")
	}
	for _, g := range o.groups {
		fmt.Printf("would attach to %s\n", g.Path)
	}
	for i, r := range o.rules {
		fmt.Printf("rule %d: %s\n", i+1, r)
	}
	return nil
}

func paths(groups []cgroup.Group) []string {
	var list []string
	for _, g := range groups {
		list = append(list, g.Path)
	}
	return list
}

func texts(rules []policy.Rule) []string {
	var list []string
	for _, r := range rules {
		list = append(list, r.String())
	}
	return list
}

// warnDropped says which cgroups were left out, and why that is right.
func warnDropped(dropped []cgroup.Group) {
	for _, g := range dropped {
		fmt.Fprintf(os.Stderr, "shunt: up: %s is given twice or inside another cgroup: covered already\n", g.Path)
	}
}
