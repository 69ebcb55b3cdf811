package rpc

import (
	"fmt"
	"strconv"
	"time"

	"github.com/toolhost/toolhost/internal/text"
)

// timeoutUnits are those of grpc-timeout, from the finest.
var timeoutUnits = []struct {
	name byte
	is   time.Duration
}{{'n', time.Nanosecond}, {'u', time.Microsecond}, {'m', time.Millisecond}, {'S', time.Second}, {'M', time.Minute}, {'H', time.Hour}}

const maxTimeoutValue = 99_999_999 // eight digits

// encodeTimeout is d in the finest unit that holds it, rounded up.
func encodeTimeout(d time.Duration) string {
	if d <= 0 {
		return "0n"
	}
	for _, unit := range timeoutUnits {
		if n := (d-1)/unit.is + 1; n <= maxTimeoutValue {
			return strconv.FormatInt(int64(n), 10) + string(unit.name)
		}
	}
	return "99999999H"
}

func decodeTimeout(s string) (time.Duration, error) {
	if len(s) < 2 || len(s) > 9 {
		return 0, fmt.Errorf("malformed grpc-timeout %q", text.Bytes(s, 32))
	}
	for _, unit := range timeoutUnits {
		if s[len(s)-1] != unit.name {
			continue
		}
		n, err := strconv.ParseUint(s[:len(s)-1], 10, 32)
		if err != nil {
			break
		}
		const longest = time.Duration(1<<63 - 1)
		if time.Duration(n) > longest/unit.is {
			return longest, nil
		}
		return time.Duration(n) * unit.is, nil
	}
	return 0, fmt.Errorf("malformed grpc-timeout %q", s)
}
