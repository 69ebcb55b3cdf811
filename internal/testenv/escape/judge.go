package escape

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"slices"
)

const maxLineBytes = 1 << 20

// Judge reads what Main or Run wrote. It returns the number of facts and those that say escaped. It is an error if a line
// is not a probe's, if a group has no facts or no end, if one of want is missing, or if there is no group at all.
func Judge(r io.Reader, want ...string) (facts int, escaped []Fact, err error) {
	open, ended := map[string]int{}, []string{}
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxLineBytes)
	for lines.Scan() {
		fact, last, err := parse(lines.Bytes())
		switch {
		case err != nil:
			return facts, escaped, err
		case last != nil:
			if n := open[last.Probe]; n == 0 || n != last.Facts {
				return facts, escaped, fmt.Errorf("cannot judge probe %s: %d facts, its end says %d", last.Probe, n, last.Facts)
			}
			delete(open, last.Probe)
			ended = append(ended, last.Probe)
		default:
			facts++
			open[fact.Probe]++
			if fact.Escaped {
				escaped = append(escaped, fact)
			}
		}
	}
	if err := lines.Err(); err != nil {
		return facts, escaped, fmt.Errorf("cannot read facts: %w", err)
	}
	return facts, escaped, complete(open, ended, want)
}

// complete checks that every group that began has ended, and that those wanted are among them.
func complete(open map[string]int, ended, want []string) error {
	for name, n := range open {
		return fmt.Errorf("cannot judge probe %s: no end after %d facts", name, n)
	}
	if len(ended) == 0 {
		return fmt.Errorf("cannot judge: no facts")
	}
	for _, name := range want {
		if !slices.Contains(ended, name) {
			return fmt.Errorf("cannot judge: probe %s did not run", name)
		}
	}
	return nil
}

// parse reads one line, which is a fact or an end.
func parse(line []byte) (Fact, *end, error) {
	var f Fact
	if err := json.Unmarshal(line, &f); err != nil {
		return f, nil, fmt.Errorf("cannot read fact %.80q: %w", line, err)
	}
	if f.Probe == "" || f.Case == "" {
		return f, nil, fmt.Errorf("cannot read fact %.80q: no probe or no case", line)
	}
	if f.Case != endCase {
		return f, nil, nil
	}
	var e end
	if err := json.Unmarshal(line, &e); err != nil {
		return f, nil, fmt.Errorf("cannot read end %.80q: %w", line, err)
	}
	return f, &e, nil
}
