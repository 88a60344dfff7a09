// SPDX-License-Identifier: GPL-2.0

// The kernel: its version, its type information and its JIT. kfuncs, the
// functions a module offers to BPF programs, need the latter two.

package doctor

import (
	"fmt"
	"strings"
)

const (
	minMajor = 6
	minMinor = 12
)

func checkKernel(h Host) Finding {
	var major, minor int
	if _, err := fmt.Sscanf(h.Release, "%d.%d", &major, &minor); err != nil {
		return note(fmt.Sprintf("the version of kernel %q is unknown", h.Release), "")
	}
	if major < minMajor || major == minMajor && minor < minMinor {
		return problem(fmt.Sprintf("kernel %s is too old: Shunt needs %d.%d or newer", h.Release, minMajor, minMinor),
			"boot a newer kernel; Debian 13 has 6.12, and newer ones are in backports")
	}
	return ok("kernel " + h.Release)
}

func checkBTF(h Host) Finding {
	if !h.exists("sys/kernel/btf/vmlinux") {
		return problem("the kernel was built without type information (CONFIG_DEBUG_INFO_BTF)",
			"boot a distribution kernel, or build one with CONFIG_DEBUG_INFO_BTF=y")
	}
	return ok("/sys/kernel/btf/vmlinux is there")
}

func checkJIT(h Host) Finding {
	const sysctl = "proc/sys/net/core/bpf_jit_enable"
	switch value := h.read(sysctl); value {
	case "0":
		return problem("the BPF JIT is switched off, and module functions can only be called from compiled programs",
			"sysctl -w net.core.bpf_jit_enable=1")
	case "1", "2":
		return ok("the BPF JIT is on")
	}
	if h.exists(sysctl) {
		return note("whether the BPF JIT is on can only be read by root", "run as root")
	}
	return problem("the kernel has no BPF JIT", "boot a kernel with CONFIG_BPF_JIT=y")
}

var neededOptions = []string{
	"CONFIG_BPF_SYSCALL", "CONFIG_BPF_JIT", "CONFIG_CGROUP_BPF",
	"CONFIG_DEBUG_INFO_BTF_MODULES", "CONFIG_MODULES",
}

func checkConfig(h Host) Finding {
	options := h.config()
	if options == nil {
		return ok("the kernel's build options are not on this machine; not checked")
	}
	var missing []string
	for _, name := range neededOptions {
		if options[name] != "y" {
			missing = append(missing, name)
		}
	}
	if len(missing) > 0 {
		return problem("the kernel was built without "+strings.Join(missing, ", "),
			"boot a distribution kernel, or build one with these options")
	}
	return ok("every option that is needed is built in")
}
