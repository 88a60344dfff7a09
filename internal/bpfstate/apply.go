// SPDX-License-Identifier: GPL-2.0

// Attach, replace, detach. The order is what makes a replacement safe: load all
// first, attach cgroups that are new, replace the program in those that stay
// (the kernel does that atomically), and only then detach those that go. An
// error while attaching takes the new ones away again and leaves the former
// policy as it was; a crash anywhere leaves each cgroup with the old or the new
// policy, and the next up or down finds every pin and finishes the work.

package bpfstate

import (
	"errors"
	"fmt"
	"os"

	"shunt.dev/shunt/internal/bpfobj"
	"shunt.dev/shunt/internal/cgroup"
	"shunt.dev/shunt/internal/policy"
)

// Change is what an Apply or a Remove did, in numbers of cgroups.
type Change struct {
	Added    int `json:"added"`
	Replaced int `json:"replaced"`
	Removed  int `json:"removed"`
}

// Apply makes rules the policy of groups, and of nothing else.
func Apply(groups []cgroup.Group, rules []policy.Rule) (Change, error) {
	if err := CheckBpffs(); err != nil {
		return Change{}, err
	}
	pins, err := openPins()
	if err != nil {
		return Change{}, err
	}
	defer closePins(pins)
	objs, err := load(rules)
	if err != nil {
		return Change{}, err
	}
	defer objs.Close()
	return replace(plan(groups, pins), objs)
}

// work is what is to be done with each cgroup.
type work struct {
	add  []cgroup.Group
	keep []*pin
	drop []*pin
}

func plan(groups []cgroup.Group, pins []*pin) work {
	var w work
	wanted := map[uint64]bool{}
	held := map[uint64]bool{}
	for _, g := range groups {
		wanted[g.ID] = true
	}
	for _, p := range pins {
		if p.group != 0 && wanted[p.group] && !held[p.group] {
			held[p.group] = true
			w.keep = append(w.keep, p)
		} else {
			w.drop = append(w.drop, p)
		}
	}
	for _, g := range groups {
		if !held[g.ID] {
			w.add = append(w.add, g)
		}
	}
	return w
}

func replace(w work, objs *bpfobj.PolicyObjects) (Change, error) {
	if err := os.Mkdir(Dir, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return Change{}, err
	}
	if err := attachAll(w.add, objs); err != nil {
		os.Remove(Dir) // only goes if nothing was there before
		return Change{}, err
	}
	for _, p := range w.keep {
		if err := p.link.Update(objs.ShuntPolicy); err != nil {
			return Change{}, fmt.Errorf("replacing the policy of %s: %w (run shunt up again)", p.file, err)
		}
	}
	err := detachAll(w.drop)
	return Change{Added: len(w.add), Replaced: len(w.keep), Removed: len(w.drop)}, err
}

func attachAll(groups []cgroup.Group, objs *bpfobj.PolicyObjects) error {
	var added []*pin
	defer func() { closePins(added) }()
	for _, g := range groups {
		p, err := attach(g, objs.ShuntPolicy)
		if err != nil {
			return errors.Join(err, detachAll(added))
		}
		added = append(added, p)
	}
	return nil
}

func detachAll(pins []*pin) error {
	var errs []error
	for _, p := range pins {
		errs = append(errs, p.detach())
	}
	return errors.Join(errs...)
}

// Remove takes the policy away everywhere, and the folder with it.
func Remove() (Change, error) {
	pins, err := openPins()
	if err != nil {
		return Change{}, err
	}
	defer closePins(pins)
	if err := detachAll(pins); err != nil {
		return Change{}, err
	}
	if err := os.Remove(Dir); err != nil && !errors.Is(err, os.ErrNotExist) {
		return Change{}, fmt.Errorf("removing %s: %w", Dir, err)
	}
	return Change{Removed: len(pins)}, nil
}
