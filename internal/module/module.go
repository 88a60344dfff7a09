// SPDX-License-Identifier: GPL-2.0

// Package module loads, unloads and asks about the kernel module tcp_shunt.
//
//	module.go  what is loaded or installed, load and unload
//	ring.go    the ring size parameter
//
// Neighbours: cmd/shunt (up, down, status), internal/doctor.
package module

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// Name is the module's name.
const Name = "tcp_shunt"

const sysDir = "/sys/module/" + Name

// ErrBusy says that sockets or programs still use the module.
var ErrBusy = errors.New("the module tcp_shunt is in use")

// Loaded tells whether the module is in the kernel.
func Loaded() bool {
	_, err := os.Stat(sysDir)
	return err == nil
}

// Version is the version of the loaded module, empty if it is not loaded.
func Version() string {
	return readTrimmed(sysDir + "/version")
}

// UseCount is how many users the loaded module has, as lsmod shows it.
func UseCount() string {
	return readTrimmed(sysDir + "/refcnt")
}

// KernelRelease is the running kernel's release, such as 6.12.1-amd64.
func KernelRelease() string {
	var u unix.Utsname
	if unix.Uname(&u) != nil {
		return ""
	}
	return unix.ByteSliceToString(u.Release[:])
}

// Installed is what modinfo knows about the module file for this kernel.
type Installed struct {
	File     string
	Version  string
	Vermagic string
	Signer   string
}

// FindInstalled asks modinfo; false means that no module is installed.
func FindInstalled() (Installed, bool) {
	out, err := command("modinfo", Name).Output()
	if err != nil {
		return Installed{}, false
	}
	return parseModinfo(string(out)), true
}

func parseModinfo(text string) Installed {
	var in Installed
	for _, line := range strings.Split(text, "\n") {
		key, value, _ := strings.Cut(line, ":")
		value = strings.TrimSpace(value)
		switch key {
		case "filename":
			in.File = value
		case "version":
			in.Version = value
		case "vermagic":
			in.Vermagic = value
		case "signer":
			in.Signer = value
		}
	}
	return in
}

// Load loads the module if it is not loaded yet.
func Load() error {
	if Loaded() {
		return nil
	}
	out, err := command("modprobe", Name).CombinedOutput()
	if err == nil {
		return nil
	}
	if _, ok := FindInstalled(); !ok {
		return fmt.Errorf("the module %s is not installed for kernel %s: build and install it (make install, or DKMS)", Name, KernelRelease())
	}
	return fmt.Errorf("modprobe %s failed: %s (see dmesg, and shunt doctor)", Name, firstLine(out, err))
}

// Unload removes the module, or says ErrBusy at once.
func Unload() error {
	err := unix.DeleteModule(Name, unix.O_NONBLOCK)
	switch {
	case err == nil, errors.Is(err, unix.ENOENT):
		return nil
	case errors.Is(err, unix.EWOULDBLOCK), errors.Is(err, unix.EBUSY):
		return ErrBusy
	}
	return fmt.Errorf("unloading %s: %w", Name, err)
}

// command finds the tools of kmod also where PATH has no sbin.
func command(tool string, args ...string) *exec.Cmd {
	for _, dir := range []string{"/usr/sbin", "/sbin", "/usr/bin", "/bin"} {
		path := filepath.Join(dir, tool)
		if unix.Access(path, unix.X_OK) == nil {
			return exec.Command(path, args...)
		}
	}
	return exec.Command(tool, args...)
}

func firstLine(out []byte, err error) string {
	line, _, _ := bytes.Cut(bytes.TrimSpace(out), []byte("\n"))
	if len(line) == 0 {
		return err.Error()
	}
	return string(line)
}

func readTrimmed(path string) string {
	b, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}
