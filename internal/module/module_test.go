// SPDX-License-Identifier: GPL-2.0

package module

import "testing"

func TestParseRingSize(t *testing.T) {
	for text, want := range map[string]uint64{
		"4096": 4096, "64K": 65536, "64k": 65536, "1M": 1 << 20, "4MiB": 4 << 20,
		"": 0, "K": 0, "2K": 0, "8M": 0, "5000": 0, "-4096": 0, "64KB": 0, "4294967295M": 0,
	} {
		got, err := ParseRingSize(text)
		if got != want || (err == nil) != (want != 0) {
			t.Errorf("%q: %d, %v, want %d", text, got, err, want)
		}
	}
}

func TestParseModinfo(t *testing.T) {
	in := parseModinfo("filename:       /lib/modules/6.12.1/updates/tcp_shunt.ko\nversion:        0.1\n" +
		"description:    a: b\nvermagic:       6.12.1 SMP preempt\n")
	if in.File != "/lib/modules/6.12.1/updates/tcp_shunt.ko" || in.Version != "0.1" || in.Vermagic != "6.12.1 SMP preempt" {
		t.Errorf("%+v", in)
	}
}
