package telemetry

import (
	"errors"
	"reflect"
)

// rejected reads a collector's answer that it has taken what was sent, but for n items, from
// an exporter's error; taken says that it is such an answer. Each exporter has a type of its
// own for it, internal and all alike, which is known by its name and field therefore.
func rejected(err error) (n int64, taken bool) {
	partial, ok := errors.AsType[interface {
		error
		Is(target error) bool
	}](err)
	if !ok {
		return 0, false
	}
	v := reflect.ValueOf(partial)
	if v.Kind() != reflect.Struct || v.Type().Name() != "PartialSuccess" {
		return 0, false
	}
	items := v.FieldByName("RejectedItems")
	if !items.IsValid() || !items.CanInt() {
		return 0, false
	}
	return items.Int(), true
}
