// SPDX-License-Identifier: GPL-2.0

package bpfstate

import (
	"testing"

	"shunt.dev/shunt/internal/cgroup"
)

func TestPlan(t *testing.T) {
	groups := []cgroup.Group{{ID: 10}, {ID: 20}}
	pins := []*pin{{group: 20, file: "a"}, {group: 30, file: "b"}, {group: 0, file: "c"}, {group: 20, file: "d"}}
	w := plan(groups, pins)
	if len(w.add) != 1 || w.add[0].ID != 10 {
		t.Errorf("add %v", w.add)
	}
	if len(w.keep) != 1 || w.keep[0].file != "a" {
		t.Errorf("keep %v", w.keep)
	}
	if len(w.drop) != 3 {
		t.Errorf("%d dropped, want the other cgroup, the gone one and the double", len(w.drop))
	}
}
