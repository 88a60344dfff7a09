// SPDX-License-Identifier: GPL-2.0

// One rule from text. A rule with several ports becomes several rules that
// differ only in their port, so that each port is counted by itself.
//
// Neighbours: rule.go (what comes out), file.go (many lines of this).

package policy

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"time"
)

// Parse reads `allow|deny CONDITION...`.
func Parse(text string, def Defaults) ([]Rule, error) {
	words := strings.Fields(text)
	if len(words) == 0 {
		return nil, fmt.Errorf("a rule is empty: write for example %q", "allow port=6379")
	}
	switch words[0] {
	case "allow", "deny":
		return parseConditions(words[0] == "allow", words[1:], def)
	}
	return nil, fmt.Errorf("a rule starts with allow or deny, not %q", words[0])
}

// draft is a rule whose ports are not spread out yet.
type draft struct {
	Rule
	ports []portRange
	seen  map[string]bool
}

type portRange struct{ min, max uint16 }

func parseConditions(allow bool, words []string, def Defaults) ([]Rule, error) {
	if len(words) == 0 {
		return nil, fmt.Errorf("a rule needs a condition such as port=6379, or the word all")
	}
	d := draft{
		Rule:  Rule{Allow: allow, Scope: def.Scope, PortMax: 65535},
		ports: []portRange{{0, 65535}},
		seen:  map[string]bool{},
	}
	if allow {
		d.BusyPoll = def.BusyPoll
	} else {
		// A deny that reached less far than the allows behind it would
		// let through what it is meant to stop.
		d.Scope = ScopeAny
	}
	for _, word := range words {
		if err := d.condition(word); err != nil {
			return nil, err
		}
	}
	return d.finish()
}

func (d *draft) condition(word string) error {
	key, value, found := strings.Cut(word, "=")
	if d.seen[key] {
		return fmt.Errorf("%s= is given twice in one rule: write a rule for each", key)
	}
	d.seen[key] = true
	if key == "all" && !found {
		return nil
	}
	set, known := setters[key]
	if !known || !found {
		return fmt.Errorf("%q is not a condition: use all, port=, addr=, end=, family=, scope= or busy-poll=", word)
	}
	return set(d, value)
}

var setters = map[string]func(*draft, string) error{
	"port":      (*draft).setPorts,
	"addr":      (*draft).setAddr,
	"end":       (*draft).setEnd,
	"family":    (*draft).setFamily,
	"scope":     (*draft).setScope,
	"busy-poll": (*draft).setBusyPoll,
}

func (d *draft) finish() ([]Rule, error) {
	if d.seen["all"] && (d.seen["port"] || d.seen["addr"]) {
		return nil, fmt.Errorf("all means every port and address: leave out all, or port= and addr=")
	}
	if !d.seen["all"] && !d.seen["port"] && !d.seen["addr"] && !d.seen["family"] {
		return nil, fmt.Errorf("a rule needs port=, addr=, family= or the word all")
	}
	if d.seen["end"] && !d.seen["port"] && !d.seen["addr"] {
		return nil, fmt.Errorf("end=%s says whose port or address is meant: add port= or addr=", d.End)
	}
	if d.seen["busy-poll"] && !d.Allow {
		return nil, fmt.Errorf("busy-poll= has no meaning in a deny rule: leave it out")
	}
	if d.Addr.IsValid() && d.Family != 0 && d.Family != addrFamily(d.Addr) {
		return nil, fmt.Errorf("family=%d and addr=%s contradict each other: leave out family=", d.Family, d.Addr)
	}
	rules := make([]Rule, 0, len(d.ports))
	for _, p := range d.ports {
		r := d.Rule
		r.PortMin, r.PortMax = p.min, p.max
		rules = append(rules, r)
	}
	return rules, nil
}

func (d *draft) setPorts(value string) error {
	d.ports = nil
	for _, part := range strings.Split(value, ",") {
		p, err := parsePorts(part)
		if err != nil {
			return err
		}
		d.ports = append(d.ports, p)
	}
	return nil
}

func parsePorts(text string) (portRange, error) {
	lo, hi, isRange := strings.Cut(text, "-")
	if !isRange {
		hi = lo
	}
	first, err1 := strconv.ParseUint(lo, 10, 16)
	last, err2 := strconv.ParseUint(hi, 10, 16)
	if err1 != nil || err2 != nil || first == 0 {
		return portRange{}, fmt.Errorf("port %q: write a port from 1 to 65535, or a range such as 8000-8010", text)
	}
	if first > last {
		return portRange{}, fmt.Errorf("port %q: the range runs backwards, write %d-%d", text, last, first)
	}
	return portRange{uint16(first), uint16(last)}, nil
}

// setAddr takes a prefix or one address. A v4-mapped address is IPv4, as it is
// to the program.
func (d *draft) setAddr(value string) error {
	prefix, err := netip.ParsePrefix(value)
	if err != nil {
		addr, err := netip.ParseAddr(value)
		if err != nil || addr.Zone() != "" {
			return fmt.Errorf("addr %q: write an address or a prefix such as 10.0.0.0/8 or fd00::/8", value)
		}
		prefix = netip.PrefixFrom(addr, addr.BitLen())
	}
	prefix, err = unmap(prefix)
	if err != nil {
		return fmt.Errorf("addr %q: %w", value, err)
	}
	if prefix.Masked() != prefix {
		return fmt.Errorf("addr %q has bits set behind the prefix: write %s", value, prefix.Masked())
	}
	d.Addr = prefix
	return nil
}

func unmap(p netip.Prefix) (netip.Prefix, error) {
	if !p.Addr().Is4In6() {
		return p, nil
	}
	if p.Bits() < 96 {
		return p, fmt.Errorf("a prefix of v4-mapped addresses has at least 96 bits: write it as IPv4")
	}
	return netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-96), nil
}

func addrFamily(p netip.Prefix) uint8 {
	if p.Addr().Is4() {
		return 4
	}
	return 6
}

func (d *draft) setEnd(value string) error {
	switch value {
	case "either":
		d.End = EndEither
	case "server":
		d.End = EndServer
	case "client":
		d.End = EndClient
	case "local", "remote":
		return fmt.Errorf("end=%s differs between the two ends of a connection: write server (who listens), client or either", value)
	default:
		return fmt.Errorf("end=%s: write server (who listens), client or either", value)
	}
	return nil
}

func (d *draft) setFamily(value string) error {
	switch value {
	case "any":
		d.Family = 0
	case "4":
		d.Family = 4
	case "6":
		d.Family = 6
	default:
		return fmt.Errorf("family=%s: write 4, 6 or any", value)
	}
	return nil
}

func (d *draft) setScope(value string) error {
	s, err := ParseScope(value)
	d.Scope = s
	return err
}

func (d *draft) setBusyPoll(value string) error {
	t, err := ParseBusyPoll(value)
	d.BusyPoll = t
	return err
}

// ParseScope reads the value of scope= and of --scope.
func ParseScope(value string) (Scope, error) {
	switch value {
	case "loopback":
		return ScopeLoopback, nil
	case "any":
		return ScopeAny, nil
	}
	return 0, fmt.Errorf("scope %q: write loopback or any", value)
}

// ParseBusyPoll reads the value of busy-poll= and of --busy-poll.
func ParseBusyPoll(value string) (time.Duration, error) {
	t, err := time.ParseDuration(value)
	if err != nil || t < 0 || t > MaxBusyPoll {
		return 0, fmt.Errorf("busy-poll %q: write a time from 0 to 10ms with its unit, such as 50us", value)
	}
	if t%time.Microsecond != 0 {
		return 0, fmt.Errorf("busy-poll %q: write whole microseconds, such as 50us", value)
	}
	return t, nil
}
