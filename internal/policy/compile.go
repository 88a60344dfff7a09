// SPDX-License-Identifier: GPL-2.0

// Rules to and from the program's map entries. Decoding exists so that what
// `shunt status` shows is what the kernel holds, not what a file once said.
//
// Neighbours: bpf/policy.h (the entries), internal/bpfobj (their Go type).

package policy

import (
	"encoding/binary"
	"math/bits"
	"net/netip"
	"time"

	"shunt.dev/shunt/internal/bpfobj"
)

// Entry is one rule as the program reads it.
type Entry = bpfobj.PolicyShuntRule

const (
	actionNone  = 0
	actionAllow = 1
	actionDeny  = 2
)

// Compile turns a rule into the program's form.
func (r Rule) Compile() Entry {
	e := Entry{
		Action:     actionDeny,
		Family:     r.family(),
		End:        uint8(r.End),
		Scope:      uint8(r.Scope),
		PortMin:    r.PortMin,
		PortMax:    r.PortMax,
		BusyPollUs: uint32(r.BusyPoll / time.Microsecond),
	}
	if r.Allow {
		e.Action = actionAllow
	}
	if r.Addr.IsValid() {
		e.Addr, e.Mask = compilePrefix(r.Addr)
	}
	return e
}

// compilePrefix gives the words of address and mask in network order. IPv4
// sits in the last word.
func compilePrefix(p netip.Prefix) (addr, mask [4]uint32) {
	raw := p.Addr().AsSlice()
	first := 4 - len(raw)/4
	for i := range len(raw) / 4 {
		ones := min(max(p.Bits()-32*i, 0), 32)
		host := ^uint32(0) << (32 - ones)
		mask[first+i] = networkOrder(host)
		addr[first+i] = binary.NativeEndian.Uint32(raw[4*i:])
	}
	return addr, mask
}

func networkOrder(host uint32) uint32 {
	var b [4]byte
	binary.BigEndian.PutUint32(b[:], host)
	return binary.NativeEndian.Uint32(b[:])
}

// Decode turns an entry back into a rule; false is the end of the list.
func Decode(e Entry) (Rule, bool) {
	if e.Action == actionNone {
		return Rule{}, false
	}
	r := Rule{
		Allow:    e.Action == actionAllow,
		Family:   e.Family,
		End:      End(min(e.End, uint8(EndClient))),
		Scope:    Scope(min(e.Scope, uint8(ScopeAny))),
		PortMin:  e.PortMin,
		PortMax:  e.PortMax,
		BusyPoll: time.Duration(e.BusyPollUs) * time.Microsecond,
	}
	if e.Mask != [4]uint32{} {
		r.Addr = decodePrefix(e)
		r.Family = 0
	}
	return r, true
}

func decodePrefix(e Entry) netip.Prefix {
	var raw [16]byte
	ones := 0
	for i, word := range e.Addr {
		binary.NativeEndian.PutUint32(raw[4*i:], word)
		ones += bits.OnesCount32(e.Mask[i])
	}
	addr := netip.AddrFrom16(raw)
	if e.Family == 4 {
		addr = netip.AddrFrom4([4]byte(raw[12:]))
	}
	return netip.PrefixFrom(addr, ones)
}
