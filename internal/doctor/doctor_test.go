// SPDX-License-Identifier: GPL-2.0

package doctor

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"shunt.dev/shunt/internal/bpfstate"
	"shunt.dev/shunt/internal/module"
)

const release = "6.12.107-cloud-amd64"

// layout makes a machine out of files.
func layout(t *testing.T, files map[string]string) Host {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return Host{
		Root: root, Release: release, Caps: ^uint64(0),
		Installed: &module.Installed{File: "/x.ko", Version: "1", Vermagic: release + " SMP"},
	}
}

func good() map[string]string {
	return map[string]string{
		"sys/kernel/btf/vmlinux":           "",
		"proc/sys/net/core/bpf_jit_enable": "1\n",
		"boot/config-" + release:           "CONFIG_BPF_SYSCALL=y\nCONFIG_BPF_JIT=y\nCONFIG_CGROUP_BPF=y\nCONFIG_DEBUG_INFO_BTF_MODULES=y\nCONFIG_MODULES=y\n",
		"sys/kernel/security/lockdown":     "[none] integrity confidentiality\n",
	}
}

func TestAHealthyMachine(t *testing.T) {
	for _, f := range Run(layout(t, good())) {
		if f.Level != OK {
			t.Errorf("%+v", f)
		}
	}
}

// Each case breaks one thing; that one check must say so, and how to mend it.
func TestEachProblemIsNamedWithItsCure(t *testing.T) {
	for name, tc := range map[string]struct {
		files  map[string]string
		change func(*Host)
		check  string
		fix    string
	}{
		"old kernel": {change: func(h *Host) { h.Release = "6.1.0-amd64" }, check: "kernel", fix: "newer kernel"},
		"no BTF":     {files: map[string]string{"sys/kernel/btf/vmlinux": "-"}, check: "kernel types (BTF)", fix: "CONFIG_DEBUG_INFO_BTF=y"},
		"JIT off":    {files: map[string]string{"proc/sys/net/core/bpf_jit_enable": "0"}, check: "BPF JIT", fix: "bpf_jit_enable=1"},
		"no JIT":     {files: map[string]string{"proc/sys/net/core/bpf_jit_enable": "-"}, check: "BPF JIT", fix: "CONFIG_BPF_JIT"},
		"no cgroup BPF": {files: map[string]string{"boot/config-" + release: "CONFIG_BPF_SYSCALL=y\n"},
			check: "kernel config", fix: "these options"},
		"container":     {change: func(h *Host) { h.Caps = 0 }, check: "rights", fix: "privileged"},
		"no cgroup v2":  {change: func(h *Host) { h.Cgroup = errors.New("none") }, check: "cgroup v2", fix: "mount"},
		"no bpffs":      {change: func(h *Host) { h.Bpffs = errors.New("none") }, check: "BPF file system", fix: "mount"},
		"not installed": {change: func(h *Host) { h.Installed = nil }, check: "module installed", fix: "linux-headers-" + release},
		"headers only": {files: map[string]string{"lib/modules/" + release + "/build": ""},
			change: func(h *Host) { h.Installed = nil }, check: "module installed", fix: "make install"},
		"other kernel": {change: func(h *Host) { h.Installed.Vermagic = "6.12.1 SMP" }, check: "module installed", fix: "again"},
		"locked down": {files: map[string]string{"sys/kernel/security/lockdown": "none [integrity] confidentiality"},
			check: "module signing", fix: "mokutil"},
		"signatures": {files: map[string]string{"sys/module/module/parameters/sig_enforce": "Y\n"}, check: "module signing", fix: "mokutil"},
		"module without types": {files: map[string]string{"sys/module/tcp_shunt/version": "1"},
			check: "module loaded", fix: "pahole"},
		"empty folder": {files: map[string]string{"sys/fs/bpf/shunt/x": ""}, check: "policy", fix: "shunt down"},
		"pins without module": {change: func(h *Host) { h.Policy.Groups = []bpfstate.GroupState{{ID: 1, Path: "/a"}} },
			check: "policy", fix: "shunt down"},
		"two policies": {files: map[string]string{"sys/module/tcp_shunt/version": "1", "sys/kernel/btf/tcp_shunt": ""},
			change: func(h *Host) { h.Policy = bpfstate.State{Groups: []bpfstate.GroupState{{Path: "/a"}}, Mixed: true} },
			check:  "policy", fix: "again"},
	} {
		files := good()
		for path, text := range tc.files {
			files[path] = text
			if text == "-" {
				delete(files, path)
			}
		}
		h := layout(t, files)
		if tc.change != nil {
			tc.change(&h)
		}
		findings := Run(h)
		if Healthy(findings) {
			t.Errorf("%s: found healthy", name)
		}
		for _, f := range findings {
			if f.Check == tc.check && (f.Level != Problem || !strings.Contains(f.Fix, tc.fix)) {
				t.Errorf("%s: %+v", name, f)
			}
			if f.Level == Problem && f.Check != tc.check && name != "old kernel" {
				t.Errorf("%s: also %+v", name, f)
			}
		}
	}
}

func TestAVersionThatDiffersIsOnlyANote(t *testing.T) {
	files := good()
	files["sys/module/tcp_shunt/version"] = "0.9"
	if f := checkLoaded(layout(t, files)); f.Level != Note || !strings.Contains(f.Text, "0.9") {
		t.Errorf("%+v", f)
	}
}
