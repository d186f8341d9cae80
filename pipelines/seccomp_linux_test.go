package pipelines

import (
	"encoding/base64"
	"encoding/binary"
	"runtime"
	"slices"
	"testing"

	seccompbpf "github.com/elastic/go-seccomp-bpf"
	"github.com/elastic/go-seccomp-bpf/arch"
	"github.com/moby/profiles/seccomp"
	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"

	"builder/test/kit/golden"
	"builder/test/kit/must"
)

// families are the socket address families allowed to a guest: local, and IPv4 and IPv6
// over its own loopback.
var families = []uint64{1, 2, 10}

// interfaces are the conditions of the only netlink socket allowed to a guest. It lists
// the guest's network interfaces (NETLINK_ROUTE).
var interfaces = seccompbpf.ArgumentConditions{
	{Argument: 0, Operation: seccompbpf.Equal, Value: 16},
	{Argument: 2, Operation: seccompbpf.Equal, Value: 0},
}

// noAudit answers a socket to the kernel's audit (NETLINK_AUDIT) like a kernel without
// one. Debian's shadow gives up with any other error (lib/audit_help.c), so groupadd would
// fail in the maintainer scripts of packages. It stands before the policy, because a group
// of that library whose conditions fail leaves another value than the call's number to
// the next group (go-seccomp-bpf v1.6.0).
var noAudit = []bpf.Instruction{
	bpf.LoadAbsolute{Off: 0, Size: 4}, // the number of the call
	bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.SYS_SOCKET, SkipFalse: 5},
	bpf.LoadAbsolute{Off: 16, Size: 4}, // the family
	bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.AF_NETLINK, SkipFalse: 3},
	bpf.LoadAbsolute{Off: 32, Size: 4}, // the protocol
	bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.NETLINK_AUDIT, SkipFalse: 1},
	bpf.RetConstant{Val: uint32(seccompbpf.ActionErrno) | uint32(unix.EPROTONOSUPPORT)},
}

// denied lists calls allowed by Docker's profile on new kernels but not needed by any
// build.
var denied = []string{"ptrace", "process_vm_writev"}

// TestSeccompFilter compares the sandbox's filter with Docker's default profile for a
// container without capabilities, minus some address families and the calls in denied.
// With -update it writes the filter.
func TestSeccompFilter(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("the filter is for amd64")
	}
	profile := must.Get(seccomp.GetDefaultProfile(&specs.Spec{Process: &specs.Process{Capabilities: &specs.LinuxCapabilities{}}}))(t)
	policy := seccompbpf.Policy{DefaultAction: seccompbpf.ActionErrno}
	for _, rule := range profile.Syscalls {
		policy.Syscalls = append(policy.Syscalls, group(t, rule))
	}
	sockets := seccompbpf.SyscallGroup{
		Action:             seccompbpf.ActionAllow,
		NamesWithCondtions: []seccompbpf.NameWithConditions{{Name: "socket", Conditions: interfaces}},
	}
	for _, family := range families {
		for _, call := range []string{"socket", "socketpair"} {
			sockets.NamesWithCondtions = append(sockets.NamesWithCondtions, seccompbpf.NameWithConditions{
				Name: call, Conditions: seccompbpf.ArgumentConditions{{Argument: 0, Operation: seccompbpf.Equal, Value: family}},
			})
		}
	}
	policy.Syscalls = append(policy.Syscalls, sockets)
	program := must.Get(policy.Assemble())(t)
	golden.CheckFile(t, "scripts/seccomp.b64", encoded(t, append(noAudit, program...)))
}

// group converts a rule of the profile without the calls denied by the sandbox.
func group(t *testing.T, rule specs.LinuxSyscall) seccompbpf.SyscallGroup {
	t.Helper()
	g := seccompbpf.SyscallGroup{Action: seccompbpf.ActionAllow}
	if rule.Action == specs.ActErrno {
		g.Action = seccompbpf.ActionErrno
		if rule.ErrnoRet != nil {
			g.Action |= seccompbpf.Action(*rule.ErrnoRet)
		}
	}
	for _, name := range rule.Names {
		if _, known := arch.X86_64.SyscallNames[name]; !known || slices.Contains(denied, name) || name == "socket" || name == "socketpair" {
			continue
		}
		if len(rule.Args) == 0 {
			g.Names = append(g.Names, name)
			continue
		}
		var conditions seccompbpf.ArgumentConditions
		for _, arg := range rule.Args {
			conditions = append(conditions, condition(t, arg))
		}
		g.NamesWithCondtions = append(g.NamesWithCondtions, seccompbpf.NameWithConditions{Name: name, Conditions: conditions})
	}
	return g
}

func condition(t *testing.T, arg specs.LinuxSeccompArg) seccompbpf.Condition {
	t.Helper()
	switch {
	case arg.Op == specs.OpEqualTo:
		return seccompbpf.Condition{Argument: uint32(arg.Index), Operation: seccompbpf.Equal, Value: arg.Value}
	case arg.Op == specs.OpMaskedEqual && arg.ValueTwo == 0:
		return seccompbpf.Condition{Argument: uint32(arg.Index), Operation: seccompbpf.BitsNotSet, Value: arg.Value}
	}
	t.Fatalf("the profile has a condition that this test cannot translate: %+v", arg)
	return seccompbpf.Condition{}
}

// encoded returns a program in the kernel's format (struct sock_filter) in base 64.
func encoded(t *testing.T, program []bpf.Instruction) []byte {
	t.Helper()
	raw := must.Get(bpf.Assemble(program))(t)
	var data []byte
	for _, i := range raw {
		data = binary.LittleEndian.AppendUint16(data, i.Op)
		data = append(data, i.Jt, i.Jf)
		data = binary.LittleEndian.AppendUint32(data, i.K)
	}
	text := base64.StdEncoding.EncodeToString(data)
	var lines []byte
	for part := range slices.Chunk([]byte(text), 76) {
		lines = append(append(lines, part...), '\n')
	}
	return lines
}
