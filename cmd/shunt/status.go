// SPDX-License-Identifier: GPL-2.0

// shunt status: what is on, with which rules, and how much it does.
//
// Neighbours: internal/bpfstate (the policy), internal/proc (counters).

package main

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"shunt.dev/shunt/internal/bpfstate"
	"shunt.dev/shunt/internal/module"
	"shunt.dev/shunt/internal/proc"
	"shunt.dev/shunt/internal/table"
)

const statusHelp = `Usage: shunt status [--json]

Shows the kernel and the module, the policy with what each rule did since it was
put in place, how many connections are joined, how many of their bytes went
through rings, and why sockets were refused, if some were.

A rule counts each socket that it matched, so a connection with both ends under
the policy counts twice; OFFERED counts the connecting ends and JOINED the
connections. REFUSED gives the errors of sockets that were not joined: ENOENT
means that the other end is remote or not under the policy.

Example:
  shunt status --json | jq .ring_share
`

type statusResult struct {
	Kernel    string       `json:"kernel"`
	Module    moduleStatus `json:"module"`
	Policy    policyStatus `json:"policy"`
	Joined    uint64       `json:"joined"`
	Joins     uint64       `json:"joins"`
	RingBytes uint64       `json:"ring_bytes"`
	TCPBytes  uint64       `json:"tcp_bytes"`
	RingShare *float64     `json:"ring_share"` // null: no byte sent yet

	// Why sockets were not joined, whoever asked: reasons with their counts.
	Refused map[string]uint64 `json:"refused"`
}

type moduleStatus struct {
	Loaded   bool   `json:"loaded"`
	Version  string `json:"version"`
	RingSize uint64 `json:"ring_size"`
}

type policyStatus struct {
	On        bool           `json:"on"`
	Known     bool           `json:"known"` // false: only root may read it
	Mixed     bool           `json:"mixed"`
	Cgroups   []cgroupStatus `json:"cgroups"`
	Rules     []ruleStatus   `json:"rules"`
	Unmatched uint64         `json:"unmatched"`
}

type cgroupStatus struct {
	ID   uint64 `json:"id"`
	Path string `json:"path"` // empty: the cgroup is gone
}

type ruleStatus struct {
	Rule    string            `json:"rule"`
	Matched uint64            `json:"matched"`
	Offered uint64            `json:"offered"`
	Joined  uint64            `json:"joined"`
	Refused map[string]uint64 `json:"refused"`
}

func status(args []string) error {
	f := newFlags("status")
	if err := f.parseOnly(args); err != nil {
		return err
	}
	r, err := readStatus()
	if err != nil {
		return err
	}
	if f.json {
		return printJSON(r)
	}
	return r.show()
}

func readStatus() (statusResult, error) {
	r := statusResult{Kernel: module.KernelRelease(), Refused: map[string]uint64{}}
	r.Module = moduleStatus{module.Loaded(), module.Version(), module.RingSize()}
	if err := r.Policy.read(); err != nil {
		return r, err
	}
	s, err := proc.ReadStats()
	if errors.Is(err, proc.ErrNotLoaded) {
		return r, nil
	}
	r.Joined, r.Joins = s.Get("joined"), s.Get("joins")
	r.RingBytes, r.TCPBytes = s.Get("ring_bytes"), s.Sum("tcp_bytes_")
	if share, ok := s.RingShare(); ok {
		r.RingShare = &share
	}
	for _, c := range s {
		if reason, ok := strings.CutPrefix(c.Name, "refused_"); ok && c.Value > 0 {
			r.Refused[reason] = c.Value
		}
	}
	return r, err
}

func (p *policyStatus) read() error {
	p.Cgroups, p.Rules = []cgroupStatus{}, []ruleStatus{}
	s, err := bpfstate.Read()
	if errors.Is(err, os.ErrPermission) {
		return nil
	}
	if err != nil {
		return err
	}
	p.Known, p.On, p.Mixed, p.Unmatched = true, len(s.Groups) > 0, s.Mixed, s.Unmatched
	for _, g := range s.Groups {
		p.Cgroups = append(p.Cgroups, cgroupStatus(g))
	}
	for _, r := range s.Rules {
		p.Rules = append(p.Rules, ruleStatus{r.Rule.String(), r.Matched, r.Offered, r.Joined, r.Refused})
	}
	return nil
}

func (r statusResult) show() error {
	var t table.Table
	t.Row("kernel", r.Kernel)
	t.Row("module", r.Module.text())
	t.Row("policy", r.Policy.text())
	for i, g := range r.Policy.Cgroups {
		label := ""
		if i == 0 {
			label = "cgroups"
		}
		t.Row(label, g.text())
	}
	if r.Module.Loaded {
		t.Row("joined", fmt.Sprintf("%d now, %d since the module was loaded", r.Joined, r.Joins))
		t.Row("bytes", r.bytesText())
	}
	for i, reason := range slices.Sorted(maps.Keys(r.Refused)) {
		label := ""
		if i == 0 {
			label = "refused"
		}
		t.Row(label, fmt.Sprintf("%d %s", r.Refused[reason], refusalText(reason)))
	}
	if err := t.Write(os.Stdout); err != nil {
		return err
	}
	return r.Policy.showRules()
}

func (m moduleStatus) text() string {
	if !m.Loaded {
		return "not loaded"
	}
	return fmt.Sprintf("%s %s, rings of %s", module.Name, m.Version, table.Bytes(m.RingSize))
}

func (p policyStatus) text() string {
	switch {
	case !p.Known:
		return "unknown: only root may read it"
	case p.Mixed:
		return "half replaced by a command that broke off: run shunt up again, or shunt down"
	case p.On:
		return "on"
	}
	return "off: nothing is joined by policy"
}

func (g cgroupStatus) text() string {
	if g.Path == "" {
		return "(gone)"
	}
	return g.Path
}

func (r statusResult) bytesText() string {
	if r.RingShare == nil {
		return "none yet"
	}
	return fmt.Sprintf("%s through rings (%s), %s by TCP on joined connections",
		table.Bytes(r.RingBytes), percent(*r.RingShare), table.Bytes(r.TCPBytes))
}

func refusalText(reason string) string {
	if text := proc.ExplainRefusal(reason); text != "" {
		return text
	}
	return reason
}

func (p policyStatus) showRules() error {
	if len(p.Rules) == 0 {
		return nil
	}
	var t table.Table
	t.Row("", "RULE", "MATCHED", "OFFERED", "JOINED", "REFUSED")
	for i, r := range p.Rules {
		t.Row(i+1, r.Rule, r.Matched, r.Offered, r.Joined, refusedText(r.Refused))
	}
	t.Row("", "(no rule matched)", p.Unmatched, "-", "-", "-")
	fmt.Println()
	return t.Write(os.Stdout)
}

func refusedText(refused map[string]uint64) string {
	var parts []string
	for _, name := range bpfstate.Refusals {
		if n := refused[name]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, name))
		}
	}
	if len(parts) == 0 {
		return "0"
	}
	return strings.Join(parts, ", ")
}
