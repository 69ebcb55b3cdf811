package budget_test

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/toolhost/toolhost/budget"
)

// The operator gives a tool a minute, and the model asks for a day.
func ExampleResolve() {
	profile, _ := budget.Standard(budget.ToolCall)
	r := budget.Resolve(profile,
		budget.Ask{Layer: budget.LayerGlobal, Rank: budget.RankTool, Timeout: time.Minute, Detail: "toolhost.yaml:12"},
		budget.Ask{Layer: budget.LayerCall, Timeout: 24 * time.Hour, Detail: "_meta timeout"},
	)
	fmt.Println(budget.Format(r.Timeout), "by", r.Source)
	fmt.Println(r.Warnings[0])
	// Output:
	// 1h by call
	// timeout 24h asked by call (_meta timeout) is above the maximum 1h of tool_call: 1h is used
}

// What an operator says on the command line holds as given, and a call's own wish is
// held to it.
func ExampleResolve_operator() {
	profile, _ := budget.Standard(budget.ToolCall)
	flag := budget.Ask{Layer: budget.LayerGlobal, Rank: budget.RankFlag, Timeout: 300 * time.Millisecond, Detail: "--timeout"}
	fmt.Println(budget.Resolve(profile, flag).Timeout)
	fmt.Println(budget.Resolve(profile, flag, budget.Ask{Layer: budget.LayerCall, Timeout: time.Millisecond}).Warnings)
	// Output:
	// 300ms
	// [timeout 1ms asked by call is below the minimum 300ms of --timeout: 300ms is used]
}

// A call with a timeout of 30s waits for a human from its second to its 92nd second.
func ExampleClock() {
	admitted := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	clock := budget.NewClock(admitted, budget.ClockSpec{Timeout: 30 * time.Second})
	show := func() {
		if at, reason, ok := clock.Next(); ok {
			fmt.Println(reason, "at", at.Format(time.TimeOnly))
			return
		}
		fmt.Println("standing still")
	}

	show()
	clock.Paused(admitted.Add(2 * time.Second))
	show()
	clock.Resumed(admitted.Add(92 * time.Second))
	show()
	clock.Overran()
	show()
	// Output:
	// soft at 12:00:10
	// standing still
	// soft at 12:01:40
	// deadline at 12:02:00
}

func ExampleHint() {
	arguments := json.RawMessage(`{"url": "https://example.com", "_meta": {"timeout": 90000}}`)
	hint, rest, err := budget.Hint(arguments, nil, "")
	fmt.Println(budget.Format(hint.Timeout), "in", hint.Detail)
	fmt.Println(string(rest), err)
	// Output:
	// 1m30s in _meta timeout in the arguments
	// {"url": "https://example.com"} <nil>
}

func ExampleRetry() {
	retry := budget.Retry{Attempts: 4, AttemptTimeout: 5 * time.Second, Jitter: budget.NoJitter}
	random := func() float64 { return 0 } // rand.Float64 of math/rand/v2 in earnest
	for attempt := 1; ; attempt++ {
		fmt.Println("attempt", attempt, "with", retry.Timeout(30*time.Second, 0))
		wait, again := retry.Next(budget.Failure{Attempt: attempt, Retryable: true}, random)
		if !again {
			break
		}
		fmt.Println("wait", wait)
	}
	// Output:
	// attempt 1 with 5s
	// wait 200ms
	// attempt 2 with 5s
	// wait 400ms
	// attempt 3 with 5s
	// wait 800ms
	// attempt 4 with 5s
}
