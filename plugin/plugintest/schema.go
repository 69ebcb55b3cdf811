package plugintest

import (
	"errors"
	"fmt"

	"github.com/toolhost/toolhost/plugin/schema"
)

func validateJSON(rules, raw []byte) error {
	if len(raw) == 0 {
		return errors.New("it is missing")
	}
	value, err := schema.DecodeAny(raw)
	if err != nil {
		return err
	}
	return validate(rules, value)
}

func validate(rules []byte, value any) error {
	resolved, err := schema.Parse(rules)
	if err != nil {
		return fmt.Errorf("a host would refuse its schema: %w", err)
	}
	return resolved.Validate(value)
}
