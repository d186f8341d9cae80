package device

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"builder/internal/gates/verdict"
	"builder/internal/machine/nccllog"
	"builder/internal/plan/recipe"
)

// Transport is a kind of connection between GPUs.
type Transport string

// The transports for users to request. The first is the default if the links of the
// host are NVLink or xGMI.
const (
	NVLink Transport = "nvlink" // from GPU to GPU, over NVLink or xGMI
	P2P    Transport = "p2p"    // from GPU to GPU, over any bus
	SHM    Transport = "shm"    // through the memory of the host
	IB     Transport = "ib"     // InfiniBand or RoCE
	GDRDMA Transport = "gdrdma" // InfiniBand or RoCE, directly from GPU memory
	Socket Transport = "socket" // TCP
)

// Transports lists every transport.
func Transports() []Transport { return []Transport{NVLink, P2P, SHM, IB, GDRDMA, Socket} }

// A Way is a transport, with the variables that make NCCL and RCCL use it between the
// GPUs of one host. They prefer the transports above it.
type Way struct {
	Transport Transport
	Env       map[string]string
	shows     []nccllog.Transport // how it appears in the log
}

var ways = map[Transport]Way{
	NVLink: {NVLink, nil, []nccllog.Transport{nccllog.P2P}},
	P2P:    {P2P, nil, []nccllog.Transport{nccllog.P2P}},
	SHM:    {SHM, map[string]string{"NCCL_P2P_DISABLE": "1", "NCCL_NVLS_ENABLE": "0"}, []nccllog.Transport{nccllog.SHM}},
	IB:     {IB, network, []nccllog.Transport{nccllog.IB, nccllog.GDRDMA}},
	GDRDMA: {GDRDMA, network, []nccllog.Transport{nccllog.GDRDMA}},
	Socket: {Socket, map[string]string{"NCCL_P2P_DISABLE": "1", "NCCL_SHM_DISABLE": "1", "NCCL_NVLS_ENABLE": "0", "NCCL_NET": "Socket"}, []nccllog.Transport{nccllog.Socket}},
}

var network = map[string]string{"NCCL_P2P_DISABLE": "1", "NCCL_SHM_DISABLE": "1", "NCCL_NVLS_ENABLE": "0"}

// transportBytes is large enough to connect every channel.
const transportBytes = 64 << 20

// Between checks the transport between the GPUs: it must be the requested one, not
// silently a slower one.
var Between = Check{2, checkTransport}

func checkTransport(ctx context.Context, d *Setup, e recipe.Expect) verdict.Verdict {
	w, v := d.Way()
	if v != nil {
		return *v
	}
	collective := e.Collectives[0]
	sweep := d.sweep(collective, d.Library, minBytes, min(transportBytes, d.MaxBytes))
	sweep.Env = w.Env
	m, err := d.run(ctx, sweep)
	if err != nil {
		return failedRun(collective, err)
	}
	log, err := nccllog.Parse(strings.NewReader(m.Log))
	if err != nil {
		return verdict.Unmeasured("%v", err)
	}
	on := hosts(m.Report)
	if len(on) > 1 {
		return judgeNetwork(w, log, strings.Join(on, ", "))
	}
	used := log.Transports()
	isNetwork := slices.Contains([]Transport{IB, GDRDMA, Socket}, w.Transport)
	if len(d.Launcher) > 0 && isNetwork && used[nccllog.IB]+used[nccllog.GDRDMA]+used[nccllog.Socket] == 0 {
		return verdict.Unmeasured("all ranks ran on %s, so no connection left it", strings.Join(on, ", ")).
			Because("give the launcher more hosts (srun --nodes=2)")
	}
	var gpus []string
	for _, gpu := range m.Report.Devices {
		gpus = append(gpus, gpu.BusID)
	}
	return d.judgeTransport(w, log, gpus)
}

// Way returns the requested transport with the environment of the setup, or a verdict
// if none is named and the host does not imply one.
func (d *Setup) Way() (Way, *verdict.Verdict) {
	wanted, why := d.Transport, fmt.Sprintf("unknown transport %q", d.Transport)
	switch all, worst, _ := d.Host.Linked(d.addresses()); {
	case wanted != "":
	case len(d.Launcher) > 0:
		why = "no transport named for the ranks of the launcher"
	case !all:
		why = fmt.Sprintf("no transport named, and NVLink does not join all GPUs of this host (two are joined by: %s)", cmp.Or(worst, "unknown"))
	default:
		wanted = NVLink
	}
	w, ok := ways[wanted]
	if !ok {
		known := strings.Trim(strings.ReplaceAll(fmt.Sprint(Transports()), " ", "|"), "[]")
		v := verdict.Unmeasured("%s", why).Because("name a known transport: --transport %s", known)
		return Way{}, &v
	}
	env := map[string]string{}
	maps.Copy(env, d.Env)
	if len(d.Launcher) == 0 { // ranks of several hosts use the network by themselves
		maps.Copy(env, w.Env)
	}
	w.Env = env
	return w, nil
}

// JudgeLog judges the transport in the log of ranks on the host's first GPUs.
func (d *Setup) JudgeLog(w Way, log nccllog.Evidence) verdict.Verdict {
	return d.judgeTransport(w, log, d.addresses())
}

// count counts the connections over the requested transport, and those over others that
// do not pass.
func (w Way) count(log nccllog.Evidence, pass ...nccllog.Transport) (right, wrong int) {
	for kind, n := range log.Transports() {
		switch {
		case slices.Contains(w.shows, kind):
			right += n
		case !slices.Contains(pass, kind):
			wrong += n
		}
	}
	return right, wrong
}

// judgeNetwork requires the requested transport for every connection between hosts, and
// at least one. Those inside a host do not use the network.
func judgeNetwork(w Way, log nccllog.Evidence, between string) verdict.Verdict {
	right, wrong := w.count(log, nccllog.P2P, nccllog.SHM)
	switch {
	case wrong > 0:
		return verdict.Failed("%d of %d connections between %s do not run over %s: %s; the library logged: %s", wrong, right+wrong, between, w.Transport, log.Summary(), log.Said())
	case right == 0:
		return verdict.Unmeasured("the log names no connection over %s between %s: %s; the library logged: %s", w.Transport, between, log.Summary(), log.Said()).
			Because("ranks of several hosts connect over %s, %s or %s: name one with --transport", IB, GDRDMA, Socket)
	}
	return verdict.Passed("%s between %s: %s", w.Transport, between, log.Summary())
}

// judgeTransport requires the requested transport for every connection.
func (d *Setup) judgeTransport(w Way, log nccllog.Evidence, gpus []string) verdict.Verdict {
	wanted := w.Transport
	right, wrong := w.count(log)
	switch {
	case wrong > 0:
		return verdict.Failed("%d of %d connections do not run over %s: %s; the library logged: %s", wrong, right+wrong, wanted, log.Summary(), log.Said())
	case right == 0 && (wanted != NVLink || !log.NVLS):
		return verdict.Unmeasured("the log names no connection between GPUs: %s", log.Said()).
			Because("read the library's output: it logged no transport, or an unknown one")
	case wanted == NVLink:
		if all, worst, known := d.Host.Linked(gpus); !known {
			return verdict.Unmeasured("%s, but the links between the GPUs are unknown", log.Summary()).
				Because("make `nvidia-smi topo -m` work, or use --transport p2p")
		} else if !all {
			return verdict.Failed("%s, but %s joins two of the GPUs", log.Summary(), worst).
				Because("choose GPUs joined by NVLink (CUDA_VISIBLE_DEVICES), or use --transport p2p")
		}
	}
	return verdict.Passed("%s: %s", wanted, log.Summary())
}

// addresses returns the bus addresses of the host's first GPUs, which a run uses unless
// they are hidden.
func (d *Setup) addresses() []string {
	var all []string
	for _, g := range d.Host.GPUs[:min(d.GPUs, len(d.Host.GPUs))] {
		all = append(all, g.BusID)
	}
	return all
}

// TransportNamed returns the transport with a name.
func TransportNamed(name string) (Transport, error) {
	if _, ok := ways[Transport(name)]; !ok {
		return "", fmt.Errorf("unknown transport %q", name)
	}
	return Transport(name), nil
}
