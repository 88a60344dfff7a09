// SPDX-License-Identifier: GPL-2.0

package proc

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestStats(t *testing.T) {
	s, err := parseStats(strings.NewReader("joins 3\nring_bytes 900\ntcp_bytes_ring_full 60\ntcp_bytes_oob 40\nbrand_new 7\n"))
	if err != nil || len(s) != 5 || s[4] != (Counter{"brand_new", 7}) {
		t.Fatalf("%v, %v", s, err)
	}
	if share, ok := s.RingShare(); !ok || share != 0.9 {
		t.Errorf("share %v, %v", share, ok)
	}
	if _, ok := (Stats{}).RingShare(); ok {
		t.Error("a share of nothing")
	}
	if s.Get("joined") != 0 || s.Sum("tcp_bytes_") != 100 {
		t.Error("sums are wrong")
	}
	if _, err := parseStats(strings.NewReader("joins many\n")); err == nil {
		t.Error("a counter without a number was taken")
	}
}

const pairsText = `pair end netns inode local remote ring_bytes tcp_bytes fallback ring_size spin_us
1a 0 4026531840 500 127.0.0.1:40000 127.0.0.1:6379 10 0 - 65536 50
2b 1 4026531840 0 [::1]:80 [::1]:40001 0 7 not_ready 0 0
1a 1 4026531840 501 127.0.0.1:6379 127.0.0.1:40000 2000 30 ring_full 65536 0
`

func TestPairs(t *testing.T) {
	pairs, err := parsePairs(strings.NewReader(pairsText))
	if err != nil || len(pairs) != 2 {
		t.Fatalf("%v, %v", pairs, err)
	}
	p := pairs[0]
	if p.ID != "1a" || p.Client.Inode != 500 || p.Client.SpinUs != 50 || p.Server.RingBytes != 2000 || p.Server.Fallback != "ring_full" {
		t.Errorf("%+v %+v %+v", p, p.Client, p.Server)
	}
	if pairs[1].Client != nil || pairs[1].Server.Local != "[::1]:80" {
		t.Errorf("%+v", pairs[1])
	}
}

func TestPairsOfAnotherModule(t *testing.T) {
	if pairs, err := parsePairs(strings.NewReader("")); err != nil || pairs != nil {
		t.Errorf("empty: %v, %v", pairs, err)
	}
	if _, err := parsePairs(strings.NewReader("pair end\n")); err == nil || !strings.Contains(err.Error(), "another version") {
		t.Errorf("columns missing: %v", err)
	}
	wider := strings.ReplaceAll(strings.Replace(pairsText, "spin_us\n", "spin_us cpu\n", 1), "\n1a", " 9\n1a")
	if _, err := parsePairs(strings.NewReader(wider)); err == nil {
		t.Error("a line with too few columns was taken")
	}
	if _, err := parsePairs(strings.NewReader(strings.Replace(pairsText, " 500 ", " x ", 1))); err == nil {
		t.Error("a bad number was taken")
	}
}

func TestOwners(t *testing.T) {
	root := t.TempDir()
	for pid, sockets := range map[string][]string{"10": {"socket:[500]", "pipe:[500]"}, "11": {"socket:[500]", "socket:[501]"}, "self": {"socket:[502]"}} {
		fd := filepath.Join(root, pid, "fd")
		if err := os.MkdirAll(fd, 0o755); err != nil {
			t.Fatal(err)
		}
		os.WriteFile(filepath.Join(root, pid, "comm"), []byte("proc"+pid+"\n"), 0o644)
		for i, s := range sockets {
			os.Symlink(s, filepath.Join(fd, string(rune('0'+i))))
		}
	}
	owners := Owners(root, map[uint64]bool{500: true, 501: true, 502: true})
	if len(owners) != 2 || owners[500].String() != "proc10/10+" || owners[501].String() != "proc11/11" {
		t.Errorf("%v", owners)
	}
}

// Every counter that the module declares has a meaning here.
func TestEveryCounterIsExplained(t *testing.T) {
	text, err := os.ReadFile("../../module/stats.h")
	if err != nil {
		t.Skip("the module's sources are not here")
	}
	prefix := ""
	for _, line := range strings.Split(string(text), "\n") {
		if strings.Contains(line, "SHUNT_FALLBACKS(X)") {
			prefix = "tcp_bytes_"
		}
		name, ok := strings.CutPrefix(strings.TrimSpace(line), "X(")
		name, _, _ = strings.Cut(name, ")")
		if ok && name != "none" && Explain(prefix+name) == "" {
			t.Errorf("%s%s is not explained in explain.go", prefix, name)
		}
	}
}
