// SPDX-License-Identifier: GPL-2.0

// What is in place, with counters: from the pinned links to their program, and
// from the program to its maps.

package bpfstate

import (
	"fmt"

	"github.com/cilium/ebpf"

	"shunt.dev/shunt/internal/bpfobj"
	"shunt.dev/shunt/internal/cgroup"
	"shunt.dev/shunt/internal/policy"
)

// Refusals names the slots of a counter, in the order of bpf/policy.h.
var Refusals = [...]string{"ENOENT", "EEXIST", "EINVAL", "ENOMEM", "ENOSPC", "other"}

// State is the policy as the kernel has it.
type State struct {
	Groups    []GroupState
	Rules     []RuleState
	Unmatched uint64 // sockets that no rule matched
	Mixed     bool   // not every cgroup has the same policy
}

// GroupState is one cgroup under the policy.
type GroupState struct {
	ID   uint64
	Path string // empty: the cgroup is gone
}

// RuleState is one rule with what it did since the policy was put in place.
type RuleState struct {
	policy.Rule
	Matched uint64
	Offered uint64
	Joined  uint64
	Refused map[string]uint64
}

// Read finds the policy. No policy is an empty State.
func Read() (State, error) {
	pins, err := openPins()
	if err != nil || len(pins) == 0 {
		return State{}, err
	}
	defer closePins(pins)
	s := State{Groups: groupStates(pins)}
	last := pins[len(pins)-1].program
	for _, p := range pins {
		s.Mixed = s.Mixed || p.program != last
	}
	err = s.readProgram(last)
	return s, err
}

func groupStates(pins []*pin) []GroupState {
	ids := map[uint64]bool{}
	for _, p := range pins {
		if p.group != 0 {
			ids[p.group] = true
		}
	}
	paths := cgroup.Paths(ids)
	var groups []GroupState
	for _, p := range pins {
		groups = append(groups, GroupState{ID: p.group, Path: paths[p.group]})
	}
	return groups
}

func (s *State) readProgram(id ebpf.ProgramID) error {
	maps, err := programMaps(id)
	if err != nil {
		return err
	}
	defer func() {
		for _, m := range maps {
			m.Close()
		}
	}()
	rules, counters := maps["shunt_rules"], maps["shunt_counters"]
	if rules == nil || counters == nil {
		return fmt.Errorf("the policy in place is of another version: run shunt up again")
	}
	return s.readMaps(rules, counters)
}

func programMaps(id ebpf.ProgramID) (map[string]*ebpf.Map, error) {
	program, err := ebpf.NewProgramFromID(id)
	if err != nil {
		return nil, fmt.Errorf("opening the policy program: %w", err)
	}
	defer program.Close()
	info, err := program.Info()
	if err != nil {
		return nil, err
	}
	ids, _ := info.MapIDs()
	maps := map[string]*ebpf.Map{}
	for _, id := range ids {
		m, err := ebpf.NewMapFromID(id)
		if err != nil {
			return maps, err
		}
		info, err := m.Info()
		if err != nil {
			m.Close()
			return maps, err
		}
		maps[info.Name] = m
	}
	return maps, nil
}

func (s *State) readMaps(rules, counters *ebpf.Map) error {
	for i := range uint32(policy.MaxRules) {
		var e policy.Entry
		if err := rules.Lookup(i, &e); err != nil {
			return fmt.Errorf("reading rule %d: %w", i+1, err)
		}
		r, ok := policy.Decode(e)
		if !ok {
			break
		}
		c, err := readCounter(counters, i)
		if err != nil {
			return err
		}
		s.Rules = append(s.Rules, ruleState(r, c))
	}
	c, err := readCounter(counters, policy.MaxRules)
	s.Unmatched = c.Matched
	return err
}

// readCounter adds up what each CPU counted.
func readCounter(m *ebpf.Map, slot uint32) (bpfobj.PolicyShuntCounter, error) {
	var sum bpfobj.PolicyShuntCounter
	var perCPU []bpfobj.PolicyShuntCounter
	if err := m.Lookup(slot, &perCPU); err != nil {
		return sum, fmt.Errorf("reading counters: %w", err)
	}
	for _, c := range perCPU {
		sum.Matched += c.Matched
		sum.Offered += c.Offered
		sum.Joined += c.Joined
		for i, n := range c.Refused {
			sum.Refused[i] += n
		}
	}
	return sum, nil
}

func ruleState(r policy.Rule, c bpfobj.PolicyShuntCounter) RuleState {
	s := RuleState{Rule: r, Matched: c.Matched, Offered: c.Offered, Joined: c.Joined, Refused: map[string]uint64{}}
	for i, n := range c.Refused {
		if n > 0 {
			s.Refused[Refusals[i]] = n
		}
	}
	return s
}
