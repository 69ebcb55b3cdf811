package relay

import (
	"os"
	"path/filepath"
	"testing"
)

// What the kernel has refused is added up from its own texts, of which nothing else counts.
func TestWhatTheKernelHasRefused(t *testing.T) {
	const four = "Ip: Forwarding OutDiscards OutNoRoutes ReasmTimeout\nIp: 2 64 7 9\n" +
		"Icmp: InMsgs InErrors\nIcmp: 5 6\nIcmpMsg: InType3 OutType3\nIcmpMsg: 2 1\n" +
		"Tcp: RtoAlgorithm MaxConn ActiveOpens AttemptFails\nTcp: 1 -1 40 30\n" +
		"Udp: InDatagrams NoPorts InErrors\nUdp: 800 200 900\nUdpLite: InDatagrams NoPorts\nUdpLite: 3 4\n"
	const six = "Ip6InReceives                   \t17\nIp6OutNoRoutes                  \t1000\nUdp6NoPorts                     \t5000\nUdpLite6NoPorts                 \t8\n"
	for name, test := range map[string]struct {
		four, six string
		want      int64
	}{
		"both":                 {four, six, 6237},
		"without IPv6":         {four, four, 237},
		"nothing":              {"", "", 0},
		"names without values": {"Ip: OutNoRoutes\nTcp: AttemptFails\nTcp: 3\n", "Ip6OutNoRoutes\n", 3},
		"too few values":       {"Ip: A OutNoRoutes\nIp: 1\n", "", 0},
	} {
		var c counters
		for i, text := range []string{test.four, test.six} {
			path := filepath.Join(t.TempDir(), "text")
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			file, err := os.Open(path)
			if err != nil {
				t.Fatal(err)
			}
			defer file.Close()
			c[i] = file
		}
		for range 2 { // once more from the beginning
			if got := c.unreachable(); got != test.want {
				t.Errorf("%s: %d, want %d", name, got, test.want)
			}
		}
	}
}
