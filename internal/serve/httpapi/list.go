package httpapi

import (
	"encoding/json"
	"io"
	"iter"
	"net/http"
)

// writeList writes an object of one list, an element at a time: all at once could take a
// multiple of the daemon's memory. rest are the object's other fields.
func writeList[T any](w io.Writer, name string, items iter.Seq[T], rest map[string]any) error {
	before := `{"` + name + `":[`
	for item := range items {
		raw, err := json.Marshal(item)
		if err == nil {
			_, err = io.WriteString(w, before)
		}
		if err == nil {
			_, err = w.Write(raw)
		}
		if err != nil {
			return err
		}
		before = ","
	}
	after := "]"
	if before != "," {
		after = before + after
	}
	for name, value := range rest {
		raw, err := json.Marshal(value)
		if err != nil {
			return err
		}
		after += `,"` + name + `":` + string(raw)
	}
	_, err := io.WriteString(w, after+"}")
	return err
}

// answerWriter has an answer that is small sent with its length, and a large one in pieces.
type answerWriter struct {
	w      http.ResponseWriter
	status int
	held   []byte
	begun  bool
}

// Write implements io.Writer.
func (a *answerWriter) Write(p []byte) (int, error) {
	if !a.begun && len(a.held)+len(p) <= pieceBytes {
		a.held = append(a.held, p...)
		return len(p), nil
	}
	if !a.begun {
		a.begun = true
		a.w.Header().Set("Content-Type", "application/json")
		a.w.WriteHeader(a.status)
		if _, err := a.w.Write(a.held); err != nil {
			return 0, err
		}
		a.held = nil
	}
	return a.w.Write(p)
}

// answerList writes the route's success, an object of one list.
func answerList[T any](q *request, name string, items iter.Seq[T], rest map[string]any) error {
	a := &answerWriter{w: q.w, status: q.route.status}
	err := writeList(a, name, items, rest)
	switch {
	case err == nil && a.begun:
		_, _ = a.w.Write([]byte{'\n'})
	case err == nil:
		respondRaw(q.w, a.status, a.held)
	case a.begun: // an answer that is cut off must not look whole
		panic(http.ErrAbortHandler)
	}
	return err
}
