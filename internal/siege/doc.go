// Package siege tests a real daemon, with little memory, under hostile tools and
// hostile clients: it must stay, tell the truth, serve its other clients about
// as well as ever, and stop in time with nothing left. The test runs where
// TOOLHOST_SIEGE says for how long; `make siege` does.
//
// The test process is the judge and holds the well-behaved neighbours. Started
// anew, the test binary is one of the hostile tools, or the mob of hostile
// clients.
package siege
