// SPDX-License-Identifier: GPL-2.0

// Two network namespaces of one machine: over veth and a bridge, through a
// router with NAT, with the same addresses twice, and with conntrack expiring
// under a joined connection.
package main

import (
	"bytes"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

func init() {
	joinedOnly("netns/veth", nsVeth)
	joinedOnly("netns/bridge", nsBridge)
	joinedOnly("netns/redirect", func(t *T) { nsNAT(t, "redirect") })
	joinedOnly("netns/dnat", func(t *T) { nsNAT(t, "dnat") })
	joinedOnly("netns/masquerade", func(t *T) { nsNAT(t, "masquerade") })
	joinedOnly("netns/same-addresses-twice", nsSameAddresses)
	joinedOnly("netns/conntrack-expires", nsConntrackExpires)
	joinedOnly("netns/namespace-removed-while-joined", nsRemoved)
}

// run is a command that must work.
func (e *Env) run(line string) {
	out, err := exec.Command("sh", "-c", line).CombinedOutput()
	if err != nil {
		e.Fatalf("%s: %v: %s", line, err, bytes.TrimSpace(out))
	}
}

// netns makes namespaces, gone at the end of the test.
func (e *Env) netns(names ...string) {
	for _, n := range names {
		exec.Command("ip", "netns", "del", n).Run()
		e.run("ip netns add " + n + " && ip -n " + n + " link set lo up")
		e.cleanup(func() { exec.Command("ip", "netns", "del", n).Run() })
	}
}

// veth joins two namespaces by a wire with an address at each end.
func (e *Env) veth(a, aIf, aAddr, b, bIf, bAddr string) {
	e.run(fmt.Sprintf("ip -n %s link add %s type veth peer name %s netns %s", a, aIf, bIf, b))
	for _, x := range [][3]string{{a, aIf, aAddr}, {b, bIf, bAddr}} {
		if x[2] != "" {
			e.run(fmt.Sprintf("ip -n %s addr add %s dev %s nodad", x[0], x[2], x[1]))
		}
		e.run(fmt.Sprintf("ip -n %s link set %s up", x[0], x[1]))
	}
}

// inside runs fn in a thread that is in the namespace.
func (e *Env) inside(ns string, fn func()) {
	f, err := os.Open("/run/netns/" + ns)
	e.must("netns", err)
	defer f.Close()
	failed := make(chan any, 1)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with its namespace
		defer func() { failed <- recover() }()
		e.must("setns", unix.Setns(int(f.Fd()), unix.CLONE_NEWNET))
		fn()
	}()
	if p := <-failed; p != nil {
		panic(p)
	}
}

func sockaddr(addr string, port int) unix.Sockaddr {
	a := netip.MustParseAddr(addr)
	if a.Is4() {
		return &unix.SockaddrInet4{Addr: a.As4(), Port: port}
	}
	return &unix.SockaddrInet6{Addr: a.As16(), Port: port}
}

func (e *Env) listenIn(ns, addr string, port int) (l int) {
	e.inside(ns, func() {
		if strings.Contains(addr, ":") {
			e.fam = "6"
		} else {
			e.fam = "4"
		}
		l = e.socket("l")
		e.setInt(l, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1)
		e.must("bind "+addr, unix.Bind(l, sockaddr(addr, port)))
		e.must("listen", unix.Listen(l, 64))
	})
	return l
}

func (e *Env) dialIn(ns, addr string, port int) (c int) {
	e.inside(ns, func() {
		c = e.socket("c")
		e.must("connect "+addr, unix.Connect(c, sockaddr(addr, port)))
	})
	return c
}

// talk proves that one connection is joined and right.
func (e *Env) talk(c, s int) {
	before := readCounters()
	e.join(c, s)
	e.exchange(c, s)
	size := 300000
	e.Go(func() error { return writeAll(c, pattern(1, size)) })
	e.Go(func() error { return writeAll(s, pattern(2, size)) })
	e.Go(func() error { return e.stream(s, 1, size, 20000, func(int) {}) })
	e.Go(func() error { return e.stream(c, 2, size, 20000, func(int) {}) })
	e.Wait()
	now := readCounters()
	// Two full streams on two CPUs overflow to TCP as they please; a fifth by
	// ring cannot come from the greeting alone.
	if now.since(before, "ring_bytes") < int64(size)/5 {
		e.Fatalf("%d of %d bytes by ring; %s", now.since(before, "ring_bytes"), 2*size, now.why(before))
	}
}

func (e *Env) endBoth(c, s int) {
	e.drop(c)
	if got := readOutWithin(s, 5*time.Second); !strings.HasSuffix(got, "end") {
		e.Fatalf("after the client closed, the server saw: %s", got)
	}
	e.drop(s)
}

// readOutWithin is readOut that gives up.
func readOutWithin(fd int, d time.Duration) string {
	got := make(chan string, 1)
	go func() { got <- readOut(fd) }()
	select {
	case s := <-got:
		return s
	case <-time.After(d):
		return "nothing in " + d.String()
	}
}

func nsEnv(t *T) *Env {
	e := newEnv(t, joinedFresh, "4")
	e.enter()
	return e
}

func nsVeth(t *T) {
	e := nsEnv(t)
	e.netns("sh-a", "sh-b")
	e.veth("sh-a", "ab", "10.71.0.1/24", "sh-b", "ba", "10.71.0.2/24")
	e.run("ip -n sh-a addr add fd71::1/64 dev ab nodad; ip -n sh-b addr add fd71::2/64 dev ba nodad")
	for _, addr := range []string{"10.71.0.2", "fd71::2"} {
		l := e.listenIn("sh-b", addr, 9000)
		c := e.dialIn("sh-a", addr, 9000)
		s := e.accept(l)
		e.talk(c, s)
		e.namespacesDiffer()
		e.endBoth(c, s)
		e.drop(l)
	}
}

// namespacesDiffer looks at what the module lists for the one joined pair.
func (e *Env) namespacesDiffer() {
	ps := readPairs()
	if len(ps) != 2 || ps[0].netns == ps[1].netns || ps[0].pair != ps[1].pair {
		e.Fatalf("the pairs list does not show one pair in two namespaces: %+v", ps)
	}
}

func nsBridge(t *T) {
	e := nsEnv(t)
	e.netns("sh-a", "sh-b", "sh-r")
	e.veth("sh-a", "aw", "10.71.0.1/24", "sh-r", "ra", "")
	e.veth("sh-b", "bw", "10.71.0.2/24", "sh-r", "rb", "")
	e.run("ip -n sh-r link add br0 type bridge && ip -n sh-r link set br0 up")
	e.run("ip -n sh-r link set ra master br0 && ip -n sh-r link set rb master br0")
	l := e.listenIn("sh-b", "10.71.0.2", 9000)
	for i := 0; i < 20; i++ {
		c := e.dialIn("sh-a", "10.71.0.2", 9000)
		s := e.accept(l)
		e.talk(c, s)
		e.endBoth(c, s)
	}
}

// router: a -- r -- b, with r forwarding.
func (e *Env) router() {
	e.netns("sh-a", "sh-b", "sh-r")
	e.veth("sh-a", "aw", "10.72.1.2/24", "sh-r", "ra", "10.72.1.1/24")
	e.veth("sh-b", "bw", "10.72.2.2/24", "sh-r", "rb", "10.72.2.1/24")
	e.run("ip -n sh-a route add default via 10.72.1.1 && ip -n sh-b route add default via 10.72.2.1")
	e.run("ip netns exec sh-r sysctl -qw net.ipv4.ip_forward=1")
}

func (e *Env) iptables(ns, rule string) {
	out, err := exec.Command("sh", "-c", "ip netns exec "+ns+" iptables-nft "+rule).CombinedOutput()
	if err != nil {
		e.Skipf("iptables-nft %s: %v: %s", rule, err, bytes.TrimSpace(out))
	}
}

func nsNAT(t *T, how string) {
	e := nsEnv(t)
	e.router()
	addr, port := "10.72.2.2", 80
	switch how {
	case "redirect":
		e.iptables("sh-b", "-t nat -A PREROUTING -p tcp --dport 80 -j REDIRECT --to-ports 9000")
	case "dnat":
		addr = "192.0.2.7"
		e.iptables("sh-r", "-t nat -A PREROUTING -p tcp -d 192.0.2.7 --dport 80 -j DNAT --to-destination 10.72.2.2:9000")
	case "masquerade":
		port = 9000
		e.iptables("sh-r", "-t nat -A POSTROUTING -o rb -j MASQUERADE")
	}
	l := e.listenIn("sh-b", "0.0.0.0", 9000)
	for i := 0; i < 5; i++ {
		c := e.dialIn("sh-a", addr, port)
		s := e.accept(l)
		if how == "masquerade" {
			sa, _ := unix.Getpeername(s)
			if a := sa.(*unix.SockaddrInet4).Addr; a != [4]byte{10, 72, 2, 1} {
				t.Fatalf("masquerade is not at work: the peer is %v", a)
			}
		}
		e.talk(c, s)
		e.endBoth(c, s)
	}
}

// nsSameAddresses: two pairs of namespaces, everything in them alike, even the
// client's port. A connection joined crosswise would bring the other's bytes.
func nsSameAddresses(t *T) {
	e := nsEnv(t)
	e.netns("sh-a1", "sh-b1", "sh-a2", "sh-b2")
	for _, i := range []string{"1", "2"} {
		e.veth("sh-a"+i, "ab", "10.73.0.1/24", "sh-b"+i, "ba", "10.73.0.2/24")
	}
	ls := []int{e.listenIn("sh-b1", "10.73.0.2", 9000), e.listenIn("sh-b2", "10.73.0.2", 9000)}
	before := readCounters()
	const rounds = 30
	for port := 30000; port < 30000+rounds; port++ {
		var cs, ss [2]int
		for i := range cs {
			e.inside(fmt.Sprintf("sh-a%d", i+1), func() {
				cs[i] = e.socket("c")
				e.must("bind", unix.Bind(cs[i], sockaddr("10.73.0.1", port)))
				e.must("nonblock", unix.SetNonblock(cs[i], true))
			})
		}
		for i := range cs { // as close together as they go
			if err := unix.Connect(cs[i], sockaddr("10.73.0.2", 9000)); err != nil && err != unix.EINPROGRESS {
				t.Fatalf("connect: %v", err)
			}
		}
		for i := range cs {
			ss[i] = e.accept(ls[i])
			pollFor(cs[i], unix.POLLOUT, 5000)
			e.must("block", unix.SetNonblock(cs[i], false))
			e.join(cs[i], ss[i])
		}
		for i := range cs {
			e.must("write", writeAll(cs[i], pattern(byte(i), 500)))
			e.must("write", writeAll(ss[i], pattern(byte(10+i), 500)))
		}
		for i := range cs {
			e.must("server's stream", e.stream(ss[i], byte(i), 500, 500, func(int) {}))
			e.must("client's stream", e.stream(cs[i], byte(10+i), 500, 500, func(int) {}))
			e.exchange(cs[i], ss[i])
		}
		e.neverCrosswise()
		for i := range cs {
			e.drop(cs[i])
			e.drop(ss[i])
		}
	}
	if n := readCounters().since(before, "joins"); n != 2*rounds {
		t.Fatalf("%d of %d connections were joined", n, 2*rounds)
	}
}

func (e *Env) inode(path string) string {
	var st unix.Stat_t
	e.must("stat "+path, unix.Stat(path, &st))
	return fmt.Sprint(st.Ino)
}

func (e *Env) neverCrosswise() {
	partner := map[string]string{}
	for _, i := range []string{"1", "2"} {
		a, b := e.inode("/run/netns/sh-a"+i), e.inode("/run/netns/sh-b"+i)
		partner[a], partner[b] = b, a
	}
	ends := map[string][]string{}
	for _, p := range readPairs() {
		ends[p.pair] = append(ends[p.pair], p.netns)
	}
	for pair, ns := range ends {
		if len(ns) == 2 && partner[ns[0]] != ns[1] {
			e.Fatalf("pair %s joins namespaces %v, which share no wire", pair, ns)
		}
	}
}

// nsConntrackExpires: the rings keep conntrack from seeing traffic; when its
// entry is gone no FIN gets through NAT, but the end of the stream still must.
func nsConntrackExpires(t *T) {
	for _, closer := range []string{"client", "server"} {
		e := nsEnv(t)
		e.router()
		e.iptables("sh-r", "-t nat -A PREROUTING -p tcp -d 192.0.2.7 --dport 80 -j DNAT --to-destination 10.72.2.2:9000")
		e.run("ip netns exec sh-r sysctl -qw net.netfilter.nf_conntrack_tcp_timeout_established=2 net.netfilter.nf_conntrack_tcp_loose=0")
		// With no way for a FIN the closed ends would send it for minutes.
		for _, ns := range []string{"sh-a", "sh-b"} {
			e.run("ip netns exec " + ns + " sysctl -qw net.ipv4.tcp_orphan_retries=1")
		}
		l := e.listenIn("sh-b", "0.0.0.0", 9000)
		c := e.dialIn("sh-a", "192.0.2.7", 80)
		s := e.accept(l)
		e.talk(c, s)
		e.run("ip netns exec sh-r conntrack -F 2>/dev/null || sleep 4")
		e.exchange(c, s)
		if closer == "server" {
			c, s = s, c
		}
		e.must("write", writeAll(c, pattern(3, 1000)))
		e.drop(c)
		if got := readOutWithin(s, 5*time.Second); got != hash(pattern(3, 1000))+" then end" {
			t.Fatalf("the %s closed after conntrack expired; its peer saw: %s", closer, got)
		}
		e.closeAll()
		t.runCleanups()
		t.undo = nil
	}
}

// nsRemoved: the namespaces' names go while a connection is joined in them; the
// sockets keep it alive, then end.
func nsRemoved(t *T) {
	e := nsEnv(t)
	e.netns("sh-a", "sh-b")
	e.veth("sh-a", "ab", "10.71.0.1/24", "sh-b", "ba", "10.71.0.2/24")
	l := e.listenIn("sh-b", "10.71.0.2", 9000)
	c := e.dialIn("sh-a", "10.71.0.2", 9000)
	s := e.accept(l)
	e.talk(c, s)
	e.run("ip netns del sh-a && ip netns del sh-b")
	e.exchange(c, s)
	e.endBoth(c, s)
	e.drop(l)
}
