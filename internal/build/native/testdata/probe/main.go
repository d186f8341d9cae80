// Command probe prints the environment of an exec in the engine.
package main

import (
	"fmt"
	"net"
	"os"
	"strings"
)

func main() {
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		panic(err)
	}
	for _, a := range addrs {
		fmt.Println("address", a)
	}
	resolv, err := os.ReadFile("/etc/resolv.conf")
	if err != nil {
		panic(err)
	}
	fmt.Print(string(resolv))
	for _, kv := range os.Environ() {
		if name, _, _ := strings.Cut(kv, "="); strings.Contains(strings.ToLower(name), "proxy") {
			fmt.Println("proxy", name)
		}
	}
}
