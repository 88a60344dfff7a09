// SPDX-License-Identifier: GPL-2.0

package cgroup

import "testing"

func TestDistinct(t *testing.T) {
	groups := []Group{
		{Path: "/c/a/b", ID: 3}, {Path: "/c/a", ID: 2}, {Path: "/c/ab", ID: 4},
		{Path: "/c/a", ID: 2}, {Path: "/c/x/y", ID: 5},
	}
	kept, dropped := Distinct(groups)
	if len(kept) != 3 || kept[0].ID != 2 || kept[1].ID != 4 || kept[2].ID != 5 {
		t.Errorf("kept %v", kept)
	}
	if len(dropped) != 2 {
		t.Errorf("dropped %v", dropped)
	}
	if kept, _ = Distinct([]Group{{Path: "/", ID: 1}, {Path: "/a", ID: 2}}); len(kept) != 1 || kept[0].ID != 1 {
		t.Errorf("kept %v below the root", kept)
	}
}

func TestFindRefusesWhatIsNoCgroup(t *testing.T) {
	for _, path := range []string{"", "/no/such/folder", "/etc", "/etc/passwd"} {
		if g, err := Find(path); err == nil {
			t.Errorf("%q was taken as %v", path, g)
		}
	}
}
