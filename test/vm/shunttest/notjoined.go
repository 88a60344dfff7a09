// SPDX-License-Identifier: GPL-2.0

// Sockets that are not joined and must work as ever: under repair, MPTCP, fast
// open with data, an end outside the policy, a listener asked to be joined.
package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"time"

	"golang.org/x/sys/unix"
)

func init() {
	joinedOnly("not-joined/repair", notJoined(repairPair))
	joinedOnly("not-joined/mptcp", notJoined(mptcpPair))
	joinedOnly("not-joined/fast-open-with-data", notJoined(fastOpenPair))
	joinedOnly("not-joined/other-end-outside-the-policy", otherEndOutside)
	joinedOnly("not-joined/offers-expire-many", offersExpireMany)
	joinedOnly("not-joined/wrong-socket-for-ulp", wrongSocketForULP)
	joinedOnly("not-joined/kernel-sockets", kernelSockets)
}

func notJoined(make func(*Env) (int, int)) func(*T) {
	return func(t *T) {
		if opt.trigger == "ulp" {
			t.Skipf("needs the policy: nobody else would ask")
		}
		e := newEnv(t, joinedFresh, "4")
		e.enter()
		before := readCounters()
		c, s := make(e)
		e.exchange(c, s)
		e.Go(func() error { return writeAll(c, pattern(1, 300000)) })
		e.Go(func() error { return e.stream(s, 1, 300000, 20000, func(int) {}) })
		e.Wait()
		now := readCounters()
		if n := now.since(before, "joins"); n != 0 {
			t.Fatalf("%d joins; it must stay on TCP", n)
		}
		if n := now.since(before, "ring_bytes"); n != 0 {
			t.Fatalf("%d bytes went by ring", n)
		}
		t.Note("%s", now.why(before))
		e.closeAll()
	}
}

const (
	tcpRepair, tcpRepairQueue, tcpQueueSeq = 19, 20, 21
	recvQueue, sendQueue                   = 1, 2
	ipprotoMPTCP                           = 262
	tcpFastOpen                            = 23
)

// repaired makes one end of a connection out of thin air, as a restore does.
func (e *Env) repaired(port, peer int, snd, rcv int) int {
	fd := e.socket("r")
	e.setInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1)
	e.setInt(fd, unix.IPPROTO_TCP, tcpRepair, 1)
	e.must("bind", unix.Bind(fd, e.addr(port)))
	e.setInt(fd, unix.IPPROTO_TCP, tcpRepairQueue, sendQueue)
	e.setInt(fd, unix.IPPROTO_TCP, tcpQueueSeq, snd)
	e.setInt(fd, unix.IPPROTO_TCP, tcpRepairQueue, recvQueue)
	e.setInt(fd, unix.IPPROTO_TCP, tcpQueueSeq, rcv)
	e.must("connect under repair", unix.Connect(fd, e.addr(peer)))
	return fd
}

func repairPair(e *Env) (c, s int) {
	c = e.repaired(40001, 40002, 1000, 5000)
	s = e.repaired(40002, 40001, 5000, 1000)
	e.setInt(c, unix.IPPROTO_TCP, tcpRepair, 0)
	e.setInt(s, unix.IPPROTO_TCP, tcpRepair, 0)
	return c, s
}

func mptcpPair(e *Env) (c, s int) {
	l, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, ipprotoMPTCP)
	if err != nil {
		e.Skipf("no MPTCP here: %v", err)
	}
	e.keep(l, "l")
	e.must("bind", unix.Bind(l, e.addr(0)))
	e.must("listen", unix.Listen(l, 1))
	sa, _ := unix.Getsockname(l)
	c, err = unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, ipprotoMPTCP)
	e.must("socket", err)
	e.keep(c, "c")
	e.must("connect", unix.Connect(c, sa))
	s, _, err = unix.Accept4(l, unix.SOCK_CLOEXEC)
	e.must("accept", err)
	return c, e.keep(s, "s")
}

// fastOpenPair takes a cookie with a first connection; the second has its data
// in the SYN.
func fastOpenPair(e *Env) (c, s int) {
	e.must("tcp_fastopen", os.WriteFile("/proc/sys/net/ipv4/tcp_fastopen", []byte("3"), 0o644))
	l, sa := e.listen()
	e.setInt(l, unix.IPPROTO_TCP, tcpFastOpen, 5)
	e.leaveCgroup() // the connection for the cookie is not the one under test
	for i := 0; i < 2; i++ {
		if i == 1 {
			e.enter()
		}
		c = e.socket("c")
		if err := unix.Sendto(c, []byte("early"), unix.MSG_FASTOPEN, sa); err != nil {
			e.Skipf("no fast open here: %v", err)
		}
		s = e.accept(l)
		e.must("read", readExactly(s, make([]byte, 5)))
		if i == 0 {
			e.drop(c)
			e.drop(s)
			e.settle()
		}
	}
	ti, err := unix.GetsockoptTCPInfo(c, unix.IPPROTO_TCP, unix.TCP_INFO)
	e.must("TCP_INFO", err)
	if ti.Options&0x20 == 0 { // TCPI_OPT_SYN_DATA
		e.Skipf("the kernel did not put the data in the SYN")
	}
	return c, s
}

// leaveCgroup: sockets made from here on are not the policy's.
func (e *Env) leaveCgroup() {
	e.must("leaving", os.WriteFile(plainCgroup+"/cgroup.procs", []byte(fmt.Sprint(os.Getpid())), 0o644))
}

// otherEndOutside: a policy's offer that nobody takes must not last. One that an
// application makes by itself may wait for the other application.
func otherEndOutside(t *T) {
	if opt.trigger == "ulp" {
		t.Skipf("needs the policy")
	}
	for _, clientInside := range []bool{true, false} {
		e := newEnv(t, joinedFresh, "4")
		e.enter()
		before := readCounters()
		if clientInside {
			e.leaveCgroup()
		}
		l, sa := e.listen()
		if clientInside {
			e.enter()
		} else {
			e.leaveCgroup()
		}
		c := e.dial(sa)
		s := e.accept(l)
		e.exchange(c, s)
		why := eventually(4*time.Second, func() string {
			if n := readCounters()["offers_pending"]; n != 0 {
				return fmt.Sprintf("%d offers still pending", n)
			}
			return ""
		})
		if why != "" {
			t.Fatalf("client inside %v: %s", clientInside, why)
		}
		e.exchange(c, s)
		e.must("write", writeAll(c, pattern(1, 100000)))
		e.must("stream", e.stream(s, 1, 100000, 10000, func(int) {}))
		now := readCounters()
		if now.since(before, "joins") != 0 || now.since(before, "ring_bytes") != 0 {
			t.Fatalf("client inside %v: it was joined", clientInside)
		}
		e.closeAll()
	}
}

func offersExpireMany(t *T) {
	if opt.trigger == "ulp" {
		t.Skipf("needs the policy")
	}
	e := newEnv(t, joinedFresh, "4")
	e.enter()
	e.leaveCgroup()
	l, sa := e.listen()
	e.enter()
	before := readCounters()
	var fds []int
	for i := 0; i < 100; i++ {
		c := e.dial(sa)
		fds = append(fds, c, e.accept(l))
	}
	made := readCounters().since(before, "offers")
	for _, fd := range fds[:100] {
		e.drop(fd)
	}
	if why := eventually(4*time.Second, func() string {
		if n := readCounters()["offers_pending"]; n != 0 {
			return fmt.Sprintf("%d offers still pending", n)
		}
		return ""
	}); why != "" {
		t.Fatalf("%s", why)
	}
	now := readCounters()
	t.Note("%d offers, %d expired", made, now.since(before, "offers_expired"))
	e.exchange(fds[100], fds[101])
	e.closeAll()
}

func wrongSocketForULP(t *T) {
	e := newEnv(t, joinedFresh, "4")
	e.enter()
	l, _ := e.listen()
	for name, fd := range map[string]int{"listener": l, "unconnected": e.socket("u")} {
		if err := unix.SetsockoptString(fd, unix.IPPROTO_TCP, tcpULP, "shunt"); err == nil {
			t.Fatalf("TCP_ULP shunt on a %s socket was accepted", name)
		}
	}
	c, s := e.pair()
	for _, fd := range []int{c, s} {
		if err := unix.SetsockoptString(fd, unix.IPPROTO_TCP, tcpULP, "shunt"); err != unix.EEXIST {
			t.Fatalf("TCP_ULP shunt on a joined socket: %v, expected EEXIST", err)
		}
	}
	e.exchange(c, s)
	e.closeAll()
}

// kernelSockets: the kernel's NFS server, asked to do nothing (RPC procedure 0),
// is a TCP peer with no process and no struct socket of a user's.
func kernelSockets(t *T) {
	if opt.trigger == "ulp" {
		t.Skipf("needs the policy: the kernel does not ask by itself")
	}
	e := newEnv(t, joinedFresh, "4")
	e.enter()
	e.startNFS()
	before := readCounters()
	for i := 0; i < 5; i++ {
		c := e.dial(e.addr(2049))
		for n := 0; n < 10; n++ {
			e.must("write", writeAll(c, rpcNull))
			e.must("read the answer", readExactly(c, make([]byte, 28)))
		}
		e.drop(c)
	}
	now := readCounters()
	if now.since(before, "joins") != 0 || now.since(before, "ring_bytes") != 0 {
		t.Fatalf("a socket of the kernel's was joined: %d", now.since(before, "joins"))
	}
	t.Note("%s", now.why(before))
	e.closeAll()
}

func (e *Env) startNFS() {
	for _, line := range []string{
		"modprobe nfsd",
		"mkdir -p /run/nfsd /var/lib/nfs/v4recovery && mount -t nfsd nfsd /proc/fs/nfsd",
		"echo -2 -3 +4 >/proc/fs/nfsd/versions; echo tcp 2049 >/proc/fs/nfsd/portlist",
		"echo 1 >/proc/fs/nfsd/threads",
	} {
		if out, err := exec.Command("sh", "-c", line).CombinedOutput(); err != nil {
			e.Skipf("no kernel service with a TCP socket here: %s: %s", line, bytes.TrimSpace(out))
		}
	}
	e.cleanup(func() { exec.Command("sh", "-c", "echo 0 >/proc/fs/nfsd/threads; umount /proc/fs/nfsd").Run() })
}

// rpcNull is a record with a call of procedure 0 of NFS 4, without credentials.
var rpcNull = []byte{0x80, 0, 0, 40, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0, 2, 0, 1, 0x86, 0xa3, 0, 0, 0, 4, 0, 0, 0, 0,
	0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}
