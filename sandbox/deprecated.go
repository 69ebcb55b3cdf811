package sandbox

import "github.com/toolhost/toolhost/api"

// Receipt says what was enforced for one call.
//
// Deprecated: use [api.Receipt].
type Receipt = api.Receipt

// Degradation is one missing mechanism.
//
// Deprecated: use [api.Degradation].
type Degradation = api.Degradation
