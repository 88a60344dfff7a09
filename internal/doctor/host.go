// SPDX-License-Identifier: GPL-2.0

// Where facts come from: files below a root, and a few that are no files.

package doctor

import (
	"bufio"
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"shunt.dev/shunt/internal/bpfstate"
	"shunt.dev/shunt/internal/cgroup"
	"shunt.dev/shunt/internal/module"
)

// Host is the machine that is looked at.
type Host struct {
	Root      string // "/"
	Release   string // of the running kernel
	UID       int
	Caps      uint64 // effective
	Installed *module.Installed
	Cgroup    error // why there is no cgroup v2, or nil
	Bpffs     error // why there is no BPF file system, or nil
	Policy    bpfstate.State
	PolicyErr error
}

// ThisHost gathers the facts of the machine that this runs on.
func ThisHost() Host {
	h := Host{Root: "/", Release: module.KernelRelease(), UID: os.Geteuid()}
	if in, found := module.FindInstalled(); found {
		h.Installed = &in
	}
	h.Caps, _ = strconv.ParseUint(h.field("proc/self/status", "CapEff:"), 16, 64)
	_, h.Cgroup = cgroup.Mount()
	h.Bpffs = bpfstate.CheckBpffs()
	h.Policy, h.PolicyErr = bpfstate.Read()
	return h
}

func (h Host) path(name string) string {
	return filepath.Join(h.Root, name)
}

func (h Host) exists(name string) bool {
	_, err := os.Stat(h.path(name))
	return err == nil
}

// read is a file's text without white space at its ends; empty if it is not
// there or may not be read.
func (h Host) read(name string) string {
	b, err := os.ReadFile(h.path(name))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

// field is the rest of the first line that starts with a word.
func (h Host) field(name, word string) string {
	for _, line := range strings.Split(h.read(name), "\n") {
		if rest, found := strings.CutPrefix(line, word); found {
			return strings.TrimSpace(rest)
		}
	}
	return ""
}

// config reads the kernel's build options, nil where they are not to be found.
func (h Host) config() map[string]string {
	if f, err := os.Open(h.path("boot/config-" + h.Release)); err == nil {
		defer f.Close()
		return parseConfig(f)
	}
	f, err := os.Open(h.path("proc/config.gz"))
	if err != nil {
		return nil
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		return nil
	}
	return parseConfig(z)
}

func parseConfig(in io.Reader) map[string]string {
	options := map[string]string{}
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		key, value, found := strings.Cut(lines.Text(), "=")
		if found && strings.HasPrefix(key, "CONFIG_") {
			options[key] = value
		}
	}
	return options
}
