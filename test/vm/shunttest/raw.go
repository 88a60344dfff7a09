// SPDX-License-Identifier: GPL-2.0

// The calls that need addresses: bad buffers, iovecs, messages by the dozen.
package main

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

func ptr[P any](p *P) unsafe.Pointer { return unsafe.Pointer(p) }

// nowhere is an address that is never mapped.
const nowhere = 8

// halfPage is memory whose second page cannot be touched; a call given the
// address that splits bytes before its end finds a bad buffer half-way.
func halfPage(e *Env) []byte {
	m, err := unix.Mmap(-1, 0, 2*4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	e.must("mmap", err)
	e.must("mprotect", unix.Mprotect(m[4096:], unix.PROT_NONE))
	e.cleanup(func() { unix.Munmap(m) })
	return m
}

func rawSend(fd int, at uintptr, n, flags int) (int, error) {
	r, _, no := unix.Syscall6(unix.SYS_SENDTO, uintptr(fd), at, uintptr(n), uintptr(flags), 0, 0)
	if no != 0 {
		return 0, no
	}
	return int(r), nil
}

func rawRecv(fd int, at uintptr, n, flags int) (int, error) {
	r, _, no := unix.Syscall6(unix.SYS_RECVFROM, uintptr(fd), at, uintptr(n), uintptr(flags), 0, 0)
	if no != 0 {
		return 0, no
	}
	return int(r), nil
}

func addrOf(b []byte) uintptr { return uintptr(unsafe.Pointer(&b[0])) }

type mmsghdr struct {
	hdr unix.Msghdr
	n   uint32
	_   [4]byte
}

// mmsg is SENDMMSG or RECVMMSG of the buffers, one message each.
func mmsg(call uintptr, fd int, bufs [][]byte, flags int) ([]int, error) {
	hs := make([]mmsghdr, len(bufs))
	iov := make([]unix.Iovec, len(bufs))
	for i, b := range bufs {
		iov[i].Base = &b[0]
		iov[i].SetLen(len(b))
		hs[i].hdr.Iov = &iov[i]
		hs[i].hdr.SetIovlen(1)
	}
	r, _, no := unix.Syscall6(call, uintptr(fd), uintptr(unsafe.Pointer(&hs[0])), uintptr(len(hs)), uintptr(flags), 0, 0)
	if no != 0 {
		return nil, no
	}
	var out []int
	for i := 0; i < int(r); i++ {
		out = append(out, int(hs[i].n))
	}
	return out, nil
}

type kernelSigaction struct {
	handler  uintptr
	flags    uint64
	restorer uintptr
	mask     uint64
}

const saRestart = 0x10000000

// setRestart says whether SIGUSR1 restarts a call that it interrupts. The
// runtime's handler stays; only its flag changes.
func setRestart(on bool) error {
	var sa kernelSigaction
	if _, _, no := unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(unix.SIGUSR1), 0, uintptr(ptr(&sa)), 8, 0, 0); no != 0 {
		return no
	}
	sa.flags &^= saRestart
	if on {
		sa.flags |= saRestart
	}
	if _, _, no := unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(unix.SIGUSR1), uintptr(ptr(&sa)), 0, 8, 0, 0); no != 0 {
		return no
	}
	return nil
}
