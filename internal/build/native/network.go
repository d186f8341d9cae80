package native

// The engine's containers have no network. builder's sandbox would take it from them
// anyway, and setting it up took 0.1 s of processor time for each container. The host
// therefore needs no bridge, packet filter, name server or address range.
const (
	// networkConfig is the engine's list of CNI plugins. The engine adds the network of
	// go-cni, whose only plugin is loopback too.
	networkConfig = `{"cniVersion": "0.3.1", "name": "none", "plugins": [{"type": "loopback"}]}` + "\n"

	// networkPlugin is the CNI plugin loopback. It leaves the loopback interface down:
	// the sandbox has its own. Without a command it fails, as a CNI plugin must.
	//
	// The engine reads the counters of a container's interface in /sys/class/net, takes
	// the one whose name begins with veth, and crashes if there is none (v0.19.10,
	// engine/buildkit/resources/netstat.go). This name leads it to the host's lo.
	networkPlugin = `#!/bin/sh
case ${CNI_COMMAND:?} in
ADD) echo '{"cniVersion": "0.3.1", "interfaces": [{"name": "veth/../lo"}]}' ;;
VERSION) echo '{"cniVersion": "0.3.1", "supportedVersions": ["0.3.1"]}' ;;
esac
`

	// nameServer replaces dnsmasq. The engine mounts a file over its /etc/resolv.conf
	// that names dnsmasq as the only name server, and then starts it. Without dnsmasq
	// the engine itself could reach no registry, so this undoes the mount.
	nameServer = `#!/bin/sh
exec umount /etc/resolv.conf
`
)
