// SPDX-License-Identifier: GPL-2.0

package table

import (
	"strings"
	"testing"
)

func TestTableAligns(t *testing.T) {
	var tab Table
	tab.Row("NAME", "VALUE", "MEANING")
	tab.Row("joins", 3, "connections joined")
	tab.Row("brand_new", 12345, "")
	var b strings.Builder
	if err := tab.Write(&b); err != nil {
		t.Fatal(err)
	}
	want := "NAME       VALUE  MEANING\njoins      3      connections joined\nbrand_new  12345\n"
	if b.String() != want {
		t.Errorf("got\n%swant\n%s", b.String(), want)
	}
}

func TestBytes(t *testing.T) {
	for n, want := range map[uint64]string{
		0: "0 B", 1023: "1023 B", 1024: "1 KiB", 1536: "1.5 KiB", 65536: "64 KiB",
		1<<20 - 1: "1 MiB", 1 << 40: "1 TiB", 1<<64 - 1: "16 EiB",
	} {
		if got := Bytes(n); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
}

func TestCount(t *testing.T) {
	if Count(1, "rule") != "1 rule" || Count(0, "rule") != "0 rules" {
		t.Error("wrong plural")
	}
}
