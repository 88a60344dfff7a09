// SPDX-License-Identifier: GPL-2.0

// Package cgroup finds cgroup v2 folders: from what the operator wrote to an
// identity, and from the identity of an attached policy back to a path.
//
// Neighbours: internal/bpfstate (attaches to them).
package cgroup

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// Group is one cgroup. Its id is the inode number of its folder, which is what
// the kernel reports for an attached program.
type Group struct {
	Path string
	ID   uint64
	Root bool // the top of the hierarchy, as far as it is visible here
}

// Mount is where the cgroup v2 hierarchy is mounted.
func Mount() (string, error) {
	for _, dir := range []string{"/sys/fs/cgroup", "/sys/fs/cgroup/unified"} {
		if isCgroup2(dir) {
			return dir, nil
		}
	}
	return "", fmt.Errorf("no cgroup v2 hierarchy at /sys/fs/cgroup: mount -t cgroup2 cgroup2 /sys/fs/cgroup")
}

// Find resolves a path; one that does not start at / is taken from the top of
// the hierarchy.
func Find(path string) (Group, error) {
	if path == "" {
		return Group{}, fmt.Errorf("an empty cgroup path: write one such as /sys/fs/cgroup/system.slice")
	}
	if !filepath.IsAbs(path) {
		mount, err := Mount()
		if err != nil {
			return Group{}, err
		}
		path = filepath.Join(mount, path)
	}
	return stat(filepath.Clean(path))
}

func stat(path string) (Group, error) {
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		return Group{}, fmt.Errorf("cgroup %s: %w", path, err)
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR || !isCgroup2(path) {
		return Group{}, fmt.Errorf("%s is not a cgroup v2 folder: choose one under %s", path, mountOrDefault())
	}
	parent := filepath.Dir(path)
	return Group{Path: path, ID: st.Ino, Root: st.Ino == 1 || !isCgroup2(parent)}, nil
}

// Distinct drops groups named twice and groups inside another one: a policy on
// the outer group holds for them already.
func Distinct(groups []Group) (kept, dropped []Group) {
	for i, g := range groups {
		if within(g, groups, i) {
			dropped = append(dropped, g)
		} else {
			kept = append(kept, g)
		}
	}
	return kept, dropped
}

func within(g Group, groups []Group, self int) bool {
	for i, other := range groups {
		same := g.ID == other.ID
		if same && i < self {
			return true
		}
		if !same && strings.HasPrefix(g.Path, strings.TrimSuffix(other.Path, "/")+"/") {
			return true
		}
	}
	return false
}

// Paths finds the folders of ids; an id whose cgroup is gone is not in it.
func Paths(ids map[uint64]bool) map[uint64]string {
	found := map[uint64]string{}
	mount, err := Mount()
	if err != nil || len(ids) == 0 {
		return found
	}
	filepath.WalkDir(mount, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return nil
		}
		var st unix.Stat_t
		if unix.Stat(path, &st) == nil && ids[st.Ino] {
			found[st.Ino] = path
		}
		if len(found) == len(ids) {
			return fs.SkipAll
		}
		return nil
	})
	return found
}

func isCgroup2(path string) bool {
	var fs unix.Statfs_t
	return unix.Statfs(path, &fs) == nil && fs.Type == unix.CGROUP2_SUPER_MAGIC
}

func mountOrDefault() string {
	mount, err := Mount()
	if err != nil {
		return "/sys/fs/cgroup"
	}
	return mount
}
