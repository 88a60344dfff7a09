// SPDX-License-Identifier: GPL-2.0

// The pinned links. A pin is named by its cgroup's id, so that the same cgroup
// can never have two.

package bpfstate

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"

	"shunt.dev/shunt/internal/cgroup"
)

const pinPrefix = "cgroup-"

// pin is one pinned link, open.
type pin struct {
	link    link.Link
	file    string
	group   uint64 // 0: its cgroup is gone
	program ebpf.ProgramID
}

func pinFile(g cgroup.Group) string {
	return filepath.Join(Dir, fmt.Sprintf("%s%d", pinPrefix, g.ID))
}

// openPins opens every link in the folder. No folder is no links.
func openPins() ([]*pin, error) {
	entries, err := os.ReadDir(Dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var pins []*pin
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), pinPrefix) {
			continue
		}
		p, err := openPin(filepath.Join(Dir, e.Name()))
		if err != nil {
			closePins(pins)
			return nil, err
		}
		pins = append(pins, p)
	}
	return pins, nil
}

func openPin(file string) (*pin, error) {
	l, err := link.LoadPinnedLink(file, nil)
	if err != nil {
		return nil, fmt.Errorf("opening %s: %w", file, err)
	}
	info, err := l.Info()
	if err != nil {
		l.Close()
		return nil, fmt.Errorf("asking about %s: %w", file, err)
	}
	p := &pin{link: l, file: file, program: info.Program}
	if cg := info.Cgroup(); cg != nil {
		p.group = cg.CgroupId
	}
	return p, nil
}

func closePins(pins []*pin) {
	for _, p := range pins {
		p.link.Close()
	}
}

// detach ends the policy of one cgroup and removes its pin.
func (p *pin) detach() error {
	if p.group != 0 {
		if err := p.link.Detach(); err != nil {
			return fmt.Errorf("detaching %s: %w", p.file, err)
		}
	}
	return p.link.Unpin()
}

// attach starts the policy in one cgroup and pins its link.
func attach(g cgroup.Group, program *ebpf.Program) (*pin, error) {
	l, err := link.AttachCgroup(link.CgroupOptions{
		Path:    g.Path,
		Attach:  ebpf.AttachCGroupSockOps,
		Program: program,
	})
	if err != nil {
		return nil, fmt.Errorf("attaching to %s: %w", g.Path, err)
	}
	file := pinFile(g)
	if err := l.Pin(file); err != nil {
		l.Close()
		return nil, fmt.Errorf("pinning %s: %w", file, err)
	}
	return &pin{link: l, file: file, group: g.ID}, nil
}
