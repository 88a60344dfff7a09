// SPDX-License-Identifier: GPL-2.0

package policy

import (
	"net/netip"
	"strings"
	"testing"
	"time"
)

func TestParseWritesOutWhatItRead(t *testing.T) {
	for _, tc := range []struct {
		text string
		want []string
	}{
		{"allow port=6379", []string{"allow port=6379 scope=loopback"}},
		{"  deny   all ", []string{"deny all scope=any"}},
		{"allow port=80,8000-8010 scope=any", []string{"allow port=80 scope=any", "allow port=8000-8010 scope=any"}},
		{"allow addr=10.1.2.3 end=client", []string{"allow addr=10.1.2.3/32 end=client scope=loopback"}},
		{"allow addr=::ffff:10.0.0.0/104", []string{"allow addr=10.0.0.0/8 scope=loopback"}},
		{"allow addr=fd00::/8 port=1-65535 busy-poll=50us", []string{"allow port=1-65535 addr=fd00::/8 scope=loopback busy-poll=50us"}},
		{"allow family=6 busy-poll=1500us", []string{"allow family=6 scope=loopback busy-poll=1.5ms"}},
	} {
		rules, err := Parse(tc.text, Defaults{})
		if err != nil {
			t.Errorf("%s: %v", tc.text, err)
			continue
		}
		if len(rules) != len(tc.want) {
			t.Errorf("%s: %d rules, want %d", tc.text, len(rules), len(tc.want))
			continue
		}
		for i, r := range rules {
			if r.String() != tc.want[i] {
				t.Errorf("%s: rule %d is %q, want %q", tc.text, i, r, tc.want[i])
			}
			again, err := Parse(r.String(), Defaults{})
			if err != nil || again[0] != r {
				t.Errorf("%s: reading %q again gives %v, %v", tc.text, r, again, err)
			}
		}
	}
}

func TestParseTeaches(t *testing.T) {
	for text, want := range map[string]string{
		"":                           "a rule is empty",
		"permit port=1":              "starts with allow or deny",
		"allow":                      "needs a condition",
		"allow prot=80":              "is not a condition",
		"allow port":                 "is not a condition",
		"allow port=0":               "from 1 to 65535",
		"allow port=65536":           "from 1 to 65535",
		"allow port=80-":             "from 1 to 65535",
		"allow port=90-80":           "write 80-90",
		"allow port=80 port=81":      "given twice",
		"allow all port=80":          "all means every port",
		"allow addr=10.0.0.1/8":      "write 10.0.0.0/8",
		"allow addr=ten":             "write an address",
		"allow addr=fe80::1%eth0":    "write an address",
		"allow addr=::ffff:0:0/90":   "at least 96 bits",
		"allow port=1 end=remote":    "write server",
		"allow port=1 end=x":         "write server",
		"allow all end=server":       "add port= or addr=",
		"allow family=5":             "write 4, 6 or any",
		"allow scope=any":            "needs port=, addr=",
		"allow all scope=host":       "write loopback or any",
		"allow all busy-poll=50":     "with its unit",
		"allow all busy-poll=11ms":   "0 to 10ms",
		"allow all busy-poll=1500ns": "whole microseconds",
		"deny all busy-poll=50us":    "no meaning in a deny rule",
		"allow family=4 addr=fd00::": "contradict",
	} {
		_, err := Parse(text, Defaults{})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want %q in it", text, err, want)
		}
	}
}

func TestDefaultsFillOnlyWhatIsSilent(t *testing.T) {
	if rules, _ := Parse("deny port=1", Defaults{}); rules[0].Scope != ScopeAny {
		t.Error("a deny rule reaches less far than an allow rule may")
	}
	def := Defaults{Scope: ScopeAny, BusyPoll: 50 * time.Microsecond}
	for text, want := range map[string]string{
		"allow port=1": "allow port=1 scope=any busy-poll=50us",
		"allow port=1 scope=loopback busy-poll=0": "allow port=1 scope=loopback",
		"deny port=1": "deny port=1 scope=any",
	} {
		rules, err := Parse(text, def)
		if err != nil || rules[0].String() != want {
			t.Errorf("%s: %v, %v, want %s", text, rules, err, want)
		}
	}
}

func TestFileErrorsNameTheLine(t *testing.T) {
	_, err := ParseLines("web.policy", strings.NewReader("# web\n\nallow port=80 # http\ndeny prt=1\n"), Defaults{})
	if err == nil || !strings.HasPrefix(err.Error(), `web.policy:4: "prt=1"`) {
		t.Errorf("error is %v", err)
	}
	rules, err := ParseLines("ok", strings.NewReader("# web\nallow port=80 # http\ndeny all"), Defaults{})
	if err != nil || len(rules) != 2 {
		t.Errorf("%v, %v", rules, err)
	}
	if _, err = ParseLines("empty", strings.NewReader("# nothing\n"), Defaults{}); err == nil {
		t.Error("an empty file was taken")
	}
}

func TestCheckFindsRulesWithoutEffect(t *testing.T) {
	for text, want := range map[string]string{
		"allow all; deny port=22":                               "rule 2 (deny port=22 scope=any) does nothing",
		"deny port=22; allow all":                               "",
		"deny port=22; allow all; deny all":                     "",
		"deny port=22; allow all; deny family=6":                "rule 3 (deny family=6 scope=any) does nothing",
		"allow port=1-100; allow port=50":                       "rule 2 (allow port=50 scope=loopback) can never match",
		"allow port=50; allow port=1-100":                       "",
		"allow port=80 end=server; allow port=80":               "",
		"allow port=80; allow port=80 end=server":               "can never match",
		"deny addr=10.0.0.0/8; allow addr=10.1.0.0/16":          "can never match",
		"deny addr=10.1.0.0/16; allow addr=10.0.0.0/8":          "",
		"deny family=4; allow addr=10.0.0.0/8":                  "can never match",
		"deny family=6; allow addr=10.0.0.0/8":                  "",
		"allow all scope=loopback; allow port=80 scope=any":     "",
		"allow all scope=any; allow port=80 scope=loopback":     "can never match",
		"allow addr=10.0.0.0/8 end=client; allow addr=10.1.1.1": "",
		"deny all": "only deny rules",
	} {
		var rules []Rule
		for _, line := range strings.Split(text, ";") {
			more, err := Parse(line, Defaults{})
			if err != nil {
				t.Fatal(err)
			}
			rules = append(rules, more...)
		}
		err := Check(rules)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: error %v, want %q", text, err, want)
		}
	}
	if Check(nil) == nil || Check(make([]Rule, MaxRules+1)) == nil {
		t.Error("an empty or an overlong list was taken")
	}
}

func TestCompileAndBack(t *testing.T) {
	for _, text := range []string{
		"allow all", "deny port=22", "allow port=1-2 addr=10.0.0.0/9 end=server scope=any busy-poll=50us",
		"allow addr=fd00:1:2::/47 end=client", "allow family=4", "deny family=6 port=9", "allow addr=127.0.0.1",
	} {
		rules, err := Parse(text, Defaults{})
		if err != nil {
			t.Fatal(err)
		}
		back, ok := Decode(rules[0].Compile())
		if !ok || back != rules[0] {
			t.Errorf("%s came back as %v", rules[0], back)
		}
	}
	if _, ok := Decode(Entry{}); ok {
		t.Error("an empty entry was decoded")
	}
}

func TestCompilePrefixIsInNetworkOrder(t *testing.T) {
	addr, mask := compilePrefix(netip.MustParsePrefix("10.128.0.0/9"))
	if addr != [4]uint32{0, 0, 0, networkOrder(0x0a800000)} || mask != [4]uint32{0, 0, 0, networkOrder(0xff800000)} {
		t.Errorf("%x %x", addr, mask)
	}
	_, mask = compilePrefix(netip.MustParsePrefix("fd00::/40"))
	if mask != [4]uint32{0xffffffff, networkOrder(0xff000000), 0, 0} {
		t.Errorf("%x", mask)
	}
}
