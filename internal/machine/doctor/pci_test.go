package doctor

import "testing"

func TestKinship(t *testing.T) {
	at := func(node int, way string) device { return device{node: node, way: wayOf("../../../devices/" + way)} }
	gpu := at(0, "pci0000:15/0000:15:01.0/0000:16:00.0/0000:17:00.0/0000:18:00.0")
	for _, c := range []struct {
		what  string
		other device
		want  string
	}{
		{"a port of the same switch", at(0, "pci0000:15/0000:15:01.0/0000:16:00.0/0000:17:01.0/0000:19:00.0"), "PIX"},
		{"a function of the same card", at(0, "pci0000:15/0000:15:01.0/0000:16:00.0/0000:17:00.0/0000:18:00.1"), "PIX"},
		{"a switch below the same switch", at(0, "pci0000:15/0000:15:01.0/0000:16:00.0/0000:17:01.0/0000:19:00.0/0000:1a:00.0/0000:1b:00.0"), "PXB"},
		{"a switch below the same root port", at(0, "pci0000:15/0000:15:01.0/0000:26:00.0/0000:27:00.0/0000:28:00.0"), "PXB"},
		{"another root port", at(0, "pci0000:15/0000:15:03.0/0000:30:00.0"), "PHB"},
		{"on the host bridge itself", at(0, "pci0000:15/0000:15:05.0"), "PHB"},
		{"another host bridge", at(0, "pci0000:37/0000:37:01.0/0000:38:00.0"), "NODE"},
		{"another node", at(1, "pci0000:97/0000:97:01.0/0000:98:00.0"), "SYS"},
		{"an unknown node", at(-1, "pci0000:97/0000:97:01.0/0000:98:00.0"), "?"},
		{"a domain of five digits", at(0, "pci10000:e0/10000:e0:06.0/10000:e1:00.0"), "NODE"},
		{"a device without a path", device{}, "?"},
		{"an invalid path", at(0, "platform/vmd"), "?"},
	} {
		if got, back := kinship(gpu, c.other), kinship(c.other, gpu); got != c.want || back != c.want {
			t.Errorf("%s: %s, and %s back, want %s", c.what, got, back, c.want)
		}
	}
}
