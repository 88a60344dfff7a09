// SPDX-License-Identifier: GPL-2.0

// The kernel module: whether it is installed for this kernel, may be loaded,
// and is the one that is loaded.

package doctor

import (
	"fmt"
	"strings"

	"shunt.dev/shunt/internal/module"
)

const moduleDir = "sys/module/" + module.Name

func checkInstalled(h Host) Finding {
	if h.Installed == nil {
		return h.notInstalled()
	}
	built, _, _ := strings.Cut(h.Installed.Vermagic, " ")
	if built != "" && built != h.Release {
		return problem(fmt.Sprintf("%s was built for kernel %s, but %s runs", h.Installed.File, built, h.Release),
			"build and install the module again: make install, or dkms autoinstall")
	}
	return ok(fmt.Sprintf("version %s in %s", orUnknown(h.Installed.Version), h.Installed.File))
}

func (h Host) notInstalled() Finding {
	text := fmt.Sprintf("the module %s is not installed for kernel %s", module.Name, h.Release)
	if h.exists(moduleDir) {
		return note(text+", though it is loaded", "install it, or it is gone after the next boot: make install")
	}
	if !h.exists("lib/modules/" + h.Release + "/build") {
		return problem(text+", and neither are this kernel's headers",
			fmt.Sprintf("install the headers (apt-get install linux-headers-%s), then the module: make install, or DKMS", h.Release))
	}
	return problem(text, "make install, or dkms autoinstall")
}

// checkSigning looks for kernels that load signed modules only.
func checkSigning(h Host) Finding {
	reason := h.whySignedOnly()
	if reason == "" {
		return ok("the kernel loads unsigned modules")
	}
	if h.exists(moduleDir) {
		return ok(reason + ", and the module is loaded")
	}
	if h.Installed != nil && h.Installed.Signer != "" {
		return ok(fmt.Sprintf("%s; the module is signed by %s", reason, h.Installed.Signer))
	}
	return problem(reason+", so the kernel refuses modules without a signature that it trusts",
		"let DKMS sign it and enrol its key (mokutil --import /var/lib/dkms/mok.pub, then reboot), or switch Secure Boot off")
}

func (h Host) whySignedOnly() string {
	switch {
	case h.read("sys/module/module/parameters/sig_enforce") == "Y":
		return "module signatures are enforced"
	case strings.Contains(h.read("sys/kernel/security/lockdown"), "[integrity]"):
		return "the kernel is locked down (integrity)"
	case strings.Contains(h.read("sys/kernel/security/lockdown"), "[confidentiality]"):
		return "the kernel is locked down (confidentiality)"
	}
	return ""
}

func checkLoaded(h Host) Finding {
	if !h.exists(moduleDir) {
		if h.Installed != nil {
			return ok("not loaded; shunt up loads it")
		}
		return note("not loaded", "")
	}
	loaded := h.read(moduleDir + "/version")
	if h.Installed != nil && h.Installed.Version != loaded {
		return note(fmt.Sprintf("version %s is loaded, but %s is installed", orUnknown(loaded), orUnknown(h.Installed.Version)),
			"shunt down, then shunt up, to run the installed one")
	}
	if !h.exists("sys/kernel/btf/" + module.Name) {
		return problem("the loaded module has no type information, so no policy can call it",
			"install the kernel headers with their vmlinux and the package dwarves (pahole), and build the module again")
	}
	return ok("version " + orUnknown(loaded))
}

func orUnknown(version string) string {
	if version == "" {
		return "unknown"
	}
	return version
}
