// Package plugintest calls tools in a test, without a process: the same code
// runs them as behind a connection, and a host that is part of the test checks
// what they send as a real one would.
//
//	func TestGreet(t *testing.T) {
//		result := plugintest.Call(t, newTool(), Input{Name: "you"})
//		if got := result.Text(); got != "Hello, you!" {
//			t.Errorf("text %q", got)
//		}
//	}
//
// A test fails by itself where the tool breaks its contract: its structured
// result does not satisfy its own output schema, it goes on for longer than the
// grace period after it was told to end, it asks what the test has no answer
// to. Everything else is in the Result for the test to judge, errors and panics
// of the tool too. It works in a testing/synctest bubble, where no test of a
// timeout takes any time.
//
// What a process of its own adds (the handshake, SIGTERM, output to stdout) is
// for `toolsdk test`.
package plugintest
