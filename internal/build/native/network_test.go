package native

import (
	"net/netip"
	"os"
	"path/filepath"
	"testing"
)

func prefixes(texts ...string) []netip.Prefix {
	var all []netip.Prefix
	for _, text := range texts {
		all = append(all, netip.MustParsePrefix(text))
	}
	return all
}

func TestChooseRange(t *testing.T) {
	free := func(netip.Prefix) bool { return true }
	first, ok := chooseRange("bd000000", nil, free)
	if !ok || !pool.Overlaps(first) || first.Bits() != 20 || first != first.Masked() {
		t.Fatalf("got %v", first)
	}
	if again, _ := chooseRange("bd000000", nil, free); again != first {
		t.Errorf("a home keeps its range: got %v, then %v", first, again)
	}
	next, ok := chooseRange("bd000000", []netip.Prefix{first}, free)
	if !ok || next.Overlaps(first) {
		t.Errorf("busy: got %v", next)
	}
	claimed, ok := chooseRange("bd000000", nil, func(p netip.Prefix) bool { return p != first })
	if !ok || claimed != next {
		t.Errorf("claimed by another: got %v, want %v", claimed, next)
	}
	if none, ok := chooseRange("bd000000", prefixes("10.0.0.0/8"), free); ok {
		t.Errorf("everything is busy: got %v", none)
	}
	seen := map[netip.Prefix]bool{}
	chooseRange("bd000000", nil, func(p netip.Prefix) bool {
		if seen[p] || !pool.Contains(p.Addr()) {
			t.Errorf("%v: offered twice, or outside of %v", p, pool)
		}
		seen[p] = true
		return false
	})
	if len(seen) != 256 {
		t.Errorf("%d ranges", len(seen))
	}
}

func TestBusyRanges(t *testing.T) {
	routes := parseRoutes("Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n" +
		"eth0\t00000000\t010200C0\t0003\t0\t0\t0\t00000000\t0\t0\t0\n" + // default route
		"eth0\t000200C0\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0\n" +
		"docker0\t0000110A\t00000000\t0001\t0\t0\t0\t0000FFFF\t0\t0\t0\n")
	if len(routes) != 2 || routes[0].String() != "192.0.2.0/24" || routes[1].String() != "10.17.0.0/16" {
		t.Errorf("routes: %v", routes)
	}
	servers := parseNameservers("search example.org\nnameserver 10.87.0.53\nnameserver fd00::1\nnameserver nonsense\noptions edns0\n")
	if len(servers) != 2 || servers[0].String() != "10.87.0.53/32" || servers[1].String() != "fd00::1/128" {
		t.Errorf("servers: %v", servers)
	}
}

func TestClaim(t *testing.T) {
	dir, a, b := t.TempDir(), t.TempDir(), t.TempDir()
	for i, c := range []struct {
		owner string
		want  bool
	}{{a, true}, {a, true}, {b, false}} {
		if got := claim(dir, "10.80.0.0-20", c.owner); got != c.want {
			t.Errorf("claim %d: got %v", i, got)
		}
	}
	if err := os.Remove(a); err != nil {
		t.Fatal(err)
	}
	if !claim(dir, "10.80.0.0-20", b) {
		t.Error("the claim of an owner that is gone is void")
	}
	if holder, _ := os.Readlink(filepath.Join(dir, "10.80.0.0-20")); holder != b {
		t.Errorf("held by %s", holder)
	}
}

func TestRecord(t *testing.T) {
	e := engine(t, Options{})
	none := record{Network: e.id()}
	if got := e.readRecord(); got != none {
		t.Errorf("got %+v", got)
	}
	if err := os.MkdirAll(e.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(e.path("state.json"), []byte("{"), 0o644); err != nil {
		t.Fatal(err)
	}
	if got := e.readRecord(); got != none {
		t.Errorf("half a record is no record: %+v", got)
	}
}

func TestUndoRules(t *testing.T) {
	saved, err := os.ReadFile("testdata/iptables-save")
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile("testdata/iptables-undo")
	if err != nil {
		t.Fatal(err)
	}
	cidr := netip.MustParsePrefix("10.95.64.0/20")
	if got := undoRules(string(saved), "bd60ac8f", cidr); got != string(want) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if got := undoRules(string(saved), "bdother", netip.MustParsePrefix("10.80.0.0/20")); got != "" {
		t.Errorf("rules of others: %s", got)
	}
}
