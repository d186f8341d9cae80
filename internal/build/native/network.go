package native

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math/bits"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"builder/internal/base/atomicfile"
	"builder/internal/base/diag"
)

// shared is the only directory common to all homes. It holds only links: claims on
// address ranges, and short paths of long socket names.
const shared = "/run/builder"

// A record is the set of parameters an engine was started with. It outlives a killed
// engine, so the engine's leftovers on the host can be found.
type record struct {
	Network string `json:"network"`
	CIDR    string `json:"cidr"`
	Build   string `json:"build"`
	Config  string `json:"config"`
	Cache   int64  `json:"cache"` // see [Options]
}

// bridge returns the name of the network's interface on the host.
func (r record) bridge() string { return r.Network + "0" }

// readRecord returns the last record. Without one it still sets the name of the
// network.
func (e *Engine) readRecord() record {
	rec := record{Network: e.id()}
	if text, err := os.ReadFile(e.path("state.json")); err == nil {
		_ = json.Unmarshal(text, &rec) // an incomplete record matches no wanted engine
	}
	return rec
}

// record chooses a network and saves the parameters for the next start.
func (e *Engine) record() (record, error) {
	if err := os.MkdirAll(shared, 0o755); err != nil {
		return record{}, err
	}
	if socket := e.path("mask", e.inner()); e.outer() != socket && !claim(shared, e.id(), filepath.Dir(socket)) {
		return record{}, fmt.Errorf("%s belongs to another home", filepath.Join(shared, e.id()))
	}
	busy, err := busyRanges()
	if err != nil {
		return record{}, err
	}
	cidr, ok := chooseRange(e.id(), busy, func(p netip.Prefix) bool { return claim(shared, claimName(p.String()), e.dir) })
	if !ok {
		return record{}, diag.Errorf(diag.NoEngine, "no free address range for the engine's network within %s", pool).
			WithHint(instead)
	}
	rec := record{Network: e.id(), CIDR: cidr.String(), Build: buildKey(), Config: configKey(), Cache: e.opts.Cache}
	text, err := json.MarshalIndent(rec, "", "  ")
	if err != nil {
		return rec, err
	}
	return rec, atomicfile.Write(e.path("state.json"), append(text, '\n'))
}

// pool contains the address ranges of all homes: 256 ranges of 4094 addresses. It
// includes upstream's default, 10.87.0.0/16.
var pool = netip.MustParsePrefix("10.80.0.0/12")

// chooseRange returns the first range that overlaps no busy one and can be claimed. The
// search starts at a range derived from id.
func chooseRange(id string, busy []netip.Prefix, claim func(netip.Prefix) bool) (netip.Prefix, bool) {
	first, _ := strconv.ParseUint(hash(id)[:2], 16, 8)
	base := pool.Addr().As4()
	for i := range uint64(256) {
		n := byte(first + i)
		addr := netip.AddrFrom4([4]byte{base[0], base[1] + n>>4, n << 4})
		if p := netip.PrefixFrom(addr, 20); !slices.ContainsFunc(busy, p.Overlaps) && claim(p) {
			return p, true
		}
	}
	return netip.Prefix{}, false
}

// busyRanges returns the addresses the host reaches today: its routes, and its name
// servers, which may be behind the default route.
func busyRanges() ([]netip.Prefix, error) {
	routes, err := os.ReadFile("/proc/net/route")
	if err != nil {
		return nil, fmt.Errorf("reading the host's routes: %w", err)
	}
	resolv, err := os.ReadFile("/etc/resolv.conf")
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("reading the host's name servers: %w", err)
	}
	return append(parseRoutes(string(routes)), parseNameservers(string(resolv))...), nil
}

// parseRoutes reads /proc/net/route. Its numbers are in host byte order. It skips the
// default route.
func parseRoutes(text string) []netip.Prefix {
	var all []netip.Prefix
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) < 8 {
			continue
		}
		dest, err1 := strconv.ParseUint(f[1], 16, 32)
		mask, err2 := strconv.ParseUint(f[7], 16, 32)
		if err1 != nil || err2 != nil || mask == 0 {
			continue
		}
		var addr [4]byte
		binary.NativeEndian.PutUint32(addr[:], uint32(dest))
		all = append(all, netip.PrefixFrom(netip.AddrFrom4(addr), bits.OnesCount32(uint32(mask))))
	}
	return all
}

func parseNameservers(text string) []netip.Prefix {
	var all []netip.Prefix
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) < 2 || f[0] != "nameserver" {
			continue
		}
		if addr, err := netip.ParseAddr(f[1]); err == nil {
			all = append(all, netip.PrefixFrom(addr, addr.BitLen()))
		}
	}
	return all
}

func claimName(cidr string) string { return strings.ReplaceAll(cidr, "/", "-") }

// claim creates the link dir/name to owner, unless another owner has it. The claim of a
// deleted owner is void.
func claim(dir, name, owner string) bool {
	link := filepath.Join(dir, name)
	if os.Symlink(owner, link) == nil {
		return true
	}
	holder, err := os.Readlink(link)
	if err != nil || holder == owner {
		return err == nil
	}
	return !exists(holder) && os.Remove(link) == nil && os.Symlink(owner, link) == nil
}
