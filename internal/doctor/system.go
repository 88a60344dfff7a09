// SPDX-License-Identifier: GPL-2.0

// Rights, cgroups, the BPF file system, and what a broken-off command left.

package doctor

import (
	"fmt"
	"strings"

	"golang.org/x/sys/unix"

	"shunt.dev/shunt/internal/module"
	"shunt.dev/shunt/internal/table"
)

var neededCaps = []struct {
	bit  uint
	name string
}{
	{unix.CAP_SYS_ADMIN, "CAP_SYS_ADMIN"},
	{unix.CAP_NET_ADMIN, "CAP_NET_ADMIN"},
	{unix.CAP_SYS_MODULE, "CAP_SYS_MODULE"},
}

func checkRights(h Host) Finding {
	var missing []string
	for _, c := range neededCaps {
		if h.Caps&(1<<c.bit) == 0 {
			missing = append(missing, c.name)
		}
	}
	if len(missing) == 0 {
		return ok("may load modules and BPF programs")
	}
	if h.UID != 0 {
		return note("not root: shunt up and down need it, and some checks see less", "run with sudo")
	}
	return problem("root, but without "+strings.Join(missing, ", ")+", as in a container",
		"run on the host itself, or in a privileged container")
}

func checkCgroup(h Host) Finding {
	if h.Cgroup != nil {
		return problem("there is no cgroup v2 hierarchy to attach a policy to",
			"boot with systemd.unified_cgroup_hierarchy=1, or mount -t cgroup2 cgroup2 /sys/fs/cgroup")
	}
	return ok("mounted")
}

func checkBpffs(h Host) Finding {
	if h.Bpffs != nil {
		return problem("no BPF file system is mounted, so a policy could not outlive the command",
			"mount -t bpf bpf /sys/fs/bpf")
	}
	return ok("mounted on /sys/fs/bpf")
}

// checkPolicy looks for states that a crash or a forced unload can leave.
func checkPolicy(h Host) Finding {
	gone := 0
	for _, g := range h.Policy.Groups {
		if g.Path == "" {
			gone++
		}
	}
	switch {
	case h.PolicyErr != nil && h.UID != 0:
		return note("the policy can only be read by root", "run with sudo")
	case h.PolicyErr != nil:
		return problem("the policy cannot be read: "+h.PolicyErr.Error(), "shunt down, then shunt up")
	case len(h.Policy.Groups) == 0 && h.exists("sys/fs/bpf/shunt"):
		return problem("a broken-off command left an empty folder /sys/fs/bpf/shunt", "shunt down")
	case len(h.Policy.Groups) == 0:
		return ok("none in place: nothing is joined by policy")
	case !h.exists(moduleDir):
		return problem("a policy is in place, but the module "+module.Name+" is gone", "shunt down, then shunt up")
	case h.Policy.Mixed:
		return problem("a broken-off command left two policies in place at once", "run shunt up again, or shunt down")
	case gone > 0:
		return note(fmt.Sprintf("%s of the policy gone", table.Count(uint64(gone), "cgroup")), "run shunt up again with the cgroups that exist")
	}
	return ok(fmt.Sprintf("%s on %s", table.Count(uint64(len(h.Policy.Rules)), "rule"), table.Count(uint64(len(h.Policy.Groups)), "cgroup")))
}
