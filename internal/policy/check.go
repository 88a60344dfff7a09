// SPDX-License-Identifier: GPL-2.0

// Rules that can never match. The first match wins, so a deny written after
// the allow that it is an exception of would silently do nothing.
//
// Neighbours: rule.go.

package policy

import "fmt"

// Check refuses a list that is empty, too long or has a rule without effect.
func Check(rules []Rule) error {
	if len(rules) == 0 {
		return fmt.Errorf("no rule given, so nothing would be joined: add --port 6379, --allow RULE, --policy FILE or --all")
	}
	if len(rules) > MaxRules {
		return fmt.Errorf("%d rules, but at most %d fit (each port of a list counts as one): use ranges or prefixes", len(rules), MaxRules)
	}
	for i, r := range rules {
		for j := range i {
			if rules[j].covers(r) {
				return fmt.Errorf("rule %d (%s) can never match, rule %d (%s) takes all of it: put it before, or leave it out", i+1, r, j+1, rules[j])
			}
		}
	}
	return checkDenies(rules)
}

// checkDenies refuses a deny with no allow behind it: nothing is joined by
// default, so it would do nothing. "deny all" may close a list, for clarity.
func checkDenies(rules []Rule) error {
	last := -1
	for i, r := range rules {
		if r.Allow {
			last = i
		}
	}
	if last < 0 {
		return fmt.Errorf("only deny rules, so nothing would be joined: add an allow rule, or use shunt down")
	}
	for i, r := range rules[last+1:] {
		if r.AnyPort() && r.family() == 0 {
			continue
		}
		return fmt.Errorf("rule %d (%s) does nothing, no allow rule comes after it: put it before the rule that it limits", last+i+2, r)
	}
	return nil
}

// covers tells whether every connection that b matches, a matches too.
func (a Rule) covers(b Rule) bool {
	if a.Family != 0 && a.Family != b.family() {
		return false
	}
	if a.Scope == ScopeLoopback && b.Scope != ScopeLoopback {
		return false
	}
	if a.AnyPort() && !a.Addr.IsValid() {
		return true
	}
	if a.End != EndEither && a.End != b.End {
		return false
	}
	return a.PortMin <= b.PortMin && a.PortMax >= b.PortMax && a.coversAddr(b)
}

func (a Rule) coversAddr(b Rule) bool {
	if !a.Addr.IsValid() {
		return true
	}
	return b.Addr.IsValid() && a.Addr.Overlaps(b.Addr) && a.Addr.Bits() <= b.Addr.Bits()
}

// family is the rule's family, also where only its address tells it.
func (r Rule) family() uint8 {
	if r.Family == 0 && r.Addr.IsValid() {
		return addrFamily(r.Addr)
	}
	return r.Family
}
