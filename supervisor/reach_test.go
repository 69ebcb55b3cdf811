package supervisor_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/toolhost/toolhost/plugin"
)

// reach is a tool that does what each line of its text says, and answers with what
// came of it, one line each:
//
//	get URL [HOST]: an HTTP request, with another host in it
//	tls ADDRESS NAME: a handshake for a name at the address of another
//	echo ADDRESS TEXT, send ADDRESS TEXT: to the server that says something first, and
//	without waiting for an answer
//	leave ADDRESS OTHER: to the first, given up, and then to the other
//	udp ADDRESS, look NAME, listen ADDRESS (as another may, too)
//	pour ADDRESS BYTES, drink URL: many bytes, and how many came
//	hold ADDRESS NUMBER: so many connections at once, until the end
//	held TEXT: to each of these, which must answer
//	storm ADDRESS NUMBER: so many, one after another in each of 200 places
//	reroute: change the namespace's addresses, routes and interfaces
//	space: the namespace's cookie and inode
//	later ADDRESS: a connection at SIGUSR1, when the call may be over
//	early: what came of the line that LAB_EARLY has, which is done as the program begins
func reach(ctx context.Context, in args, out *plugin.Output) (answer, error) {
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM([]byte(os.Getenv("LAB_CA")))
	web := &http.Client{Timeout: 20 * time.Second, Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}}
	for line := range strings.SplitSeq(in.Text, "\n") {
		words := append(strings.Fields(line), "", "")
		said, err := reachOne(ctx, web, pool, words)
		if err != nil {
			said = "error: " + err.Error()
		}
		if err := out.Text(said + "\n"); err != nil {
			return answer{}, err
		}
	}
	return answer{}, nil
}

var early = make(chan string, 1)

func reachEarly(line string) {
	said, err := reachOne(context.Background(), nil, nil, append(strings.Fields(line), "", ""))
	early <- fmt.Sprint(said, err)
}

func reachOne(ctx context.Context, web *http.Client, pool *x509.CertPool, words []string) (string, error) {
	switch to, more := words[1], words[2]; words[0] {
	case "get":
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, to, nil)
		if err != nil {
			return "", err
		}
		if r.Host = more; more == "" {
			r.Host = r.URL.Host
		}
		response, err := web.Do(r)
		if err != nil {
			return "", err
		}
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		return string(body), err
	case "tls":
		conn, err := tls.Dial("tcp", to, &tls.Config{ServerName: more, RootCAs: pool})
		if err != nil {
			return "", err
		}
		return "shaken", conn.Close()
	case "echo", "send":
		conn, err := net.Dial("tcp", to)
		if err != nil {
			return "", err
		}
		defer conn.Close()
		if _, err := io.WriteString(conn, more); err != nil || words[0] == "send" {
			return "sent", err
		}
		got := make([]byte, len("ready\n")+len(more))
		_, err = io.ReadFull(conn, got)
		return strings.ReplaceAll(string(got), "\n", " "), err
	case "leave": // and tell another that it was closed
		conn, err := net.Dial("tcp", to)
		if err != nil {
			return "", err
		}
		_, _ = io.WriteString(conn, "begun")
		_ = conn.Close()
		if conn, err = net.Dial("tcp", more); err != nil {
			return "", err
		}
		_, err = io.WriteString(conn, "left")
		return "left", errors.Join(err, conn.Close())
	case "flood": // until the end
		conn, err := net.Dial("tcp", to)
		if err != nil {
			return "", err
		}
		for chunk := make([]byte, 64<<10); ; {
			if _, err := conn.Write(chunk); err != nil {
				return "", err
			}
		}
	case "udp":
		conn, err := net.Dial("udp", to)
		if err != nil {
			return "", err
		}
		defer conn.Close()
		_, err = io.WriteString(conn, "x")
		return "sent", err
	case "look":
		list, err := net.DefaultResolver.LookupHost(ctx, to)
		return strings.Join(list, " "), err
	case "pour":
		return pour(to, more)
	case "drink":
		response, err := (&http.Client{}).Get(to)
		if err != nil {
			return "", err
		}
		defer response.Body.Close()
		n, err := io.Copy(io.Discard, response.Body)
		return fmt.Sprintf("drank %d", n), err
	case "hold":
		return hold(to, more)
	case "held":
		return tryHeld(to)
	case "storm":
		return storm(to, more)
	case "reroute":
		return reroute()
	case "space":
		own, err := ownSpace()
		return fmt.Sprintf("space %d %d", own.cookie, own.inode), err
	case "listen":
		shared := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
			const reusePort = 15 // SO_REUSEPORT, which package syscall lacks
			return c.Control(func(fd uintptr) { _ = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, reusePort, 1) })
		}}
		l, err := shared.Listen(ctx, "tcp", to)
		if err != nil {
			return "", err
		}
		return "listens", l.Close()
	case "later":
		told := make(chan os.Signal, 1)
		signal.Notify(told, syscall.SIGUSR1)
		go func() {
			<-told
			_, _ = net.Dial("tcp", to)
		}()
		return "waits", nil
	case "early":
		return <-early, nil
	case "hang":
		hang()
	}
	return "", fmt.Errorf("unknown: %q", words)
}
