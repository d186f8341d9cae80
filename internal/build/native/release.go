package native

import (
	"context"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// release removes an engine's resources on the host: its bridge, its packet filter
// rules and its claims. An engine that stops normally removes most of them itself, so
// failures here are not errors.
func (e *Engine) release(ctx context.Context, rec record) {
	if exists("/sys/class/net/" + rec.bridge()) {
		e.host(ctx, "", "ip", "link", "delete", rec.bridge())
	}
	cidr, err := netip.ParsePrefix(rec.CIDR)
	if err == nil {
		os.Remove(filepath.Join(shared, claimName(cidr.String())))
	}
	if undo := undoRules(e.host(ctx, "", "iptables-save"), rec.Network, cidr); undo != "" {
		e.host(ctx, undo, "iptables-restore", "--noflush", "--wait")
	}
	os.Remove(filepath.Join(shared, rec.Network))
}

// host runs a host program and returns its output.
func (e *Engine) host(ctx context.Context, stdin, name string, args ...string) string {
	path, ok := find(hostDirs().programs, name)
	if !ok {
		return ""
	}
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Stdin = strings.NewReader(stdin)
	out, err := cmd.Output()
	if err != nil {
		e.log("cleaning up: %s: %v", name, err)
	}
	return string(out)
}

// undoRules converts the output of iptables-save into iptables-restore input that
// deletes the rules and chains of one network. It returns "" if there are none. CNI
// plugins put the network's name into their nat rules. Their firewall rules are found
// by address. The chain CNI-FORWARD stays, because all users of CNI on the host share
// it.
func undoRules(saved, network string, cidr netip.Prefix) string {
	var undo, rules, chains strings.Builder
	for line := range strings.Lines(saved) {
		rule, isRule := strings.CutPrefix(line, "-A ")
		chain, _, _ := strings.Cut(rule, " ")
		switch {
		case strings.HasPrefix(line, "*"):
			rules.Reset()
			chains.Reset()
			rules.WriteString(line)
		case isRule && strings.Contains(rule, `"name: \"`+network+`\" id: `):
			rules.WriteString("-D " + rule)
			if i := strings.LastIndex(rule, "-j CNI-"); i >= 0 {
				chains.WriteString("-X " + rule[i+len("-j "):])
			}
		case isRule && chain == "CNI-FORWARD" && addressed(rule, cidr):
			rules.WriteString("-D " + rule)
		case line == "COMMIT\n" && strings.Contains(rules.String(), "-D "):
			undo.WriteString(rules.String() + chains.String() + line)
		}
	}
	return undo.String()
}

// addressed reports whether a rule applies to packets from or to a range.
func addressed(rule string, cidr netip.Prefix) bool {
	f := strings.Fields(rule)
	for i := range len(f) - 1 {
		if f[i] != "-s" && f[i] != "-d" {
			continue
		}
		if p, err := netip.ParsePrefix(f[i+1]); err == nil && cidr.Overlaps(p) {
			return true
		}
	}
	return false
}
