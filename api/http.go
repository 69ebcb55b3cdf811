package api

import "time"

// Done says that a request has been carried out.
type Done struct {
	OK            bool   `json:"ok"`
	TurnID        string `json:"turnId,omitempty"`
	CallID        string `json:"toolCallId,omitempty"`
	InteractionID string `json:"interactionId,omitempty"`
}

// LoginLink logs one browser in, once.
type LoginLink struct {
	Path      string    `json:"path" jsonschema:"to be opened below the daemon's address; the link's secret is in its fragment, which browsers send to nobody"`
	URL       string    `json:"url,omitempty" jsonschema:"the whole link; absent if the daemon has no one address for browsers"`
	ExpiresAt time.Time `json:"expiresAt"`
}

// Login redeems a LoginLink.
type Login struct {
	Link string `json:"link" jsonschema:"the secret of the link"`
}

// Session is a browser's session.
type Session struct {
	Token     string    `json:"token" jsonschema:"to be sent as Authorization: Bearer TOKEN; it is shown once"`
	ExpiresAt time.Time `json:"expiresAt"`
}

// Whoami describes the sender of a request.
type Whoami struct {
	Identity  string    `json:"identity" jsonschema:"as the record has it: uid 1000, token ci"`
	Roles     []string  `json:"roles" jsonschema:"call, watch, approve, admin, metrics"`
	Tools     string    `json:"tools" jsonschema:"all, or some: those that the catalogue lists"`
	Session   bool      `json:"session" jsonschema:"by a browser's session"`
	ExpiresAt time.Time `json:"expiresAt,omitzero" jsonschema:"of the token or session; absent where it does not end"`
}

// Health says whether a daemon is ready for new calls.
type Health struct {
	Status  string `json:"status" jsonschema:"ok, or unready"`
	Version string `json:"version,omitempty"`
	Reason  string `json:"reason,omitempty" jsonschema:"why it is unready"`
}

// Lists, as they are on the wire.
type (
	// Tools is the catalogue.
	Tools struct {
		Tools    []Tool   `json:"tools"`
		Problems []string `json:"problems" jsonschema:"why configured tools are missing, one line each"`
	}
	// Turns lists the active turns, oldest first, and the prestarted processes.
	Turns struct {
		Turns      []Turn       `json:"turns"`
		Prestarted []Prestarted `json:"prestarted,omitempty" jsonschema:"processes that were started before their calls, for those who may use all tools"`
	}
	// Prestarted counts the processes of one tool or server that wait for a call each.
	Prestarted struct {
		Tool    string `json:"tool"`
		Wanted  int    `json:"wanted" jsonschema:"how many are to wait"`
		Waiting int    `json:"waiting" jsonschema:"how many do"`
	}
	// Interactions lists the pending interactions of all turns.
	Interactions struct {
		Interactions []Interaction `json:"interactions"`
	}
	// TurnSummaries is a page of the history, the last started first.
	TurnSummaries struct {
		Turns []TurnSummary `json:"turns"`
	}
	// CallSummaries is a page of the history, the last queued first.
	CallSummaries struct {
		Calls []CallSummary `json:"calls"`
	}
)

// Failure is the body of every error response.
type Failure struct {
	Error Error `json:"error"`
}

// Error says why the daemon refused a request.
type Error struct {
	// Status is the HTTP status code; it is not in the body.
	Status  int    `json:"-"`
	Code    string `json:"code" jsonschema:"what to branch on, such as not_found"`
	Message string `json:"message" jsonschema:"one line for people"`
	Remedy  string `json:"remedy" jsonschema:"what to do about it"`
	// RetryAfterMs is the header Retry-After in milliseconds.
	RetryAfterMs int64 `json:"retryAfterMs,omitempty" jsonschema:"when to ask again; absent where nothing is known of that"`
}

// Error returns the message with its remedy.
func (e *Error) Error() string {
	if e.Remedy == "" {
		return e.Message
	}
	return e.Message + ": " + e.Remedy
}
