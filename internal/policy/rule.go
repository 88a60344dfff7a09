// SPDX-License-Identifier: GPL-2.0

// Package policy turns the operator's words into rules, and rules into the
// form that the BPF program reads.
//
//	rule.go     what a rule is, and how it is written out again
//	parse.go    one rule from text
//	file.go     rules from a file, with file:line in every error
//	check.go    rules that can never match
//	compile.go  rules to and from the program's map entries
//
// Neighbours: bpf/policy.h (the map entries), internal/bpfstate (puts them in
// place).
package policy

import (
	"fmt"
	"net/netip"
	"strings"
	"time"
)

// MaxRules is how many rules the program's map holds.
const MaxRules = 64

// MaxBusyPoll is the longest receive spin that the module accepts.
const MaxBusyPoll = 10 * time.Millisecond

// End is the end of a connection that must have a rule's port and address.
type End uint8

// Ends as bpf/policy.h numbers them.
const (
	EndEither End = 0
	EndServer End = 1
	EndClient End = 2
)

// Scope says how far from the loopback a rule reaches.
type Scope uint8

// Scopes as bpf/policy.h numbers them.
const (
	ScopeLoopback Scope = 0
	ScopeAny      Scope = 1
)

// Rule is one line of a policy with one port range. The first rule that
// matches a connection decides; a connection that none matches is not joined.
type Rule struct {
	Allow    bool
	Family   uint8 // 0 any, 4 or 6
	End      End
	Scope    Scope
	PortMin  uint16
	PortMax  uint16
	Addr     netip.Prefix // the zero value is any address
	BusyPoll time.Duration
}

// Defaults are what a rule takes where its text is silent.
type Defaults struct {
	Scope    Scope
	BusyPoll time.Duration
}

func (e End) String() string {
	return [...]string{"either", "server", "client"}[e]
}

func (s Scope) String() string {
	return [...]string{"loopback", "any"}[s]
}

// AnyPort tells whether the rule is silent about ports.
func (r Rule) AnyPort() bool {
	return r.PortMin == 0 && r.PortMax == 65535
}

// String writes the rule in the grammar that Parse reads.
func (r Rule) String() string {
	words := []string{"deny"}
	if r.Allow {
		words[0] = "allow"
	}
	words = append(words, r.conditions()...)
	words = append(words, "scope="+r.Scope.String())
	if r.BusyPoll > 0 {
		words = append(words, "busy-poll="+r.BusyPoll.String())
	}
	return strings.ReplaceAll(strings.Join(words, " "), "µs", "us")
}

func (r Rule) conditions() []string {
	var words []string
	if !r.AnyPort() {
		words = append(words, "port="+portText(r.PortMin, r.PortMax))
	}
	if r.Addr.IsValid() {
		words = append(words, "addr="+r.Addr.String())
	}
	if r.End != EndEither {
		words = append(words, "end="+r.End.String())
	}
	if r.Family != 0 {
		words = append(words, fmt.Sprintf("family=%d", r.Family))
	}
	if len(words) == 0 {
		words = append(words, "all")
	}
	return words
}

func portText(lo, hi uint16) string {
	if lo == hi {
		return fmt.Sprint(lo)
	}
	return fmt.Sprintf("%d-%d", lo, hi)
}
