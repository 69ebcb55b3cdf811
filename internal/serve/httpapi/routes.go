package httpapi

import (
	"net/http"
	"reflect"
	"strings"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/internal/access"
)

// route is one entry of the API. The mux and the OpenAPI document are both made
// from it.
type route struct {
	method, path string
	summary      string
	// query are the parameters that may stand behind the path.
	query []parameter
	// resumes: the header Last-Event-ID may stand in for after.
	resumes bool
	// in is the type of the body; nil means none.
	in reflect.Type
	// status is that of success, out the type of its body. kind is the media
	// type of one that has none.
	status int
	out    reflect.Type
	kind   string
	// stream describes the SSE stream sent to clients that accept one.
	stream string
	// refuses are the codes of errors beside those that any request can meet.
	refuses []string
	// need are the roles that let a request in, any of them; public lets anybody in.
	// A route with neither is refused.
	need   access.Need
	public bool
	// child: a call may use it for turns below its own.
	child  bool
	handle func(*Server, *request) error
}

type parameter struct{ name, kind, description string }

const (
	ndjson     = "application/x-ndjson"
	exposition = "text/plain"
	plainJSON  = "application/json" // of an object that has no type here
)

var filters = []parameter{
	{"tool", "string", "only with a call of this tool"},
	{"status", "string", "only with a call of this status"},
	{"since", "date-time", "begun at this time or later"},
	{"until", "date-time", "begun before this time"},
	{"limit", "integer", "at most so many; default 100, at most 10000. To go on, ask again with until"},
}

var after = parameter{"after", "integer", "only events after this seq; default 0, which is all"}

const ofTurn = "the turn's events from the first on, each with its seq as id; a gap says that some are missing"

// routes are the whole API.
var routes = []route{
	{
		method: "GET", path: "/api/health", summary: "Whether the daemon is there", public: true,
		status: http.StatusOK, out: reflect.TypeFor[api.Health](), handle: (*Server).health,
	},
	{
		method: "GET", path: "/api/ready", need: access.ToAsk, summary: "Whether calls can be made",
		status: http.StatusOK, out: reflect.TypeFor[api.Health](), refuses: []string{codeUnready}, handle: (*Server).ready,
	},
	{
		method: "GET", path: "/metrics", need: access.ToMeasure, summary: "Metrics for Prometheus, in the format that its Accept asks for",
		status: http.StatusOK, kind: exposition, refuses: []string{codeNotFound, codeBusy}, handle: (*Server).metrics,
	},
	{
		method: "GET", path: "/api/openapi.json", need: access.ToAsk, summary: "This document",
		status: http.StatusOK, kind: plainJSON, handle: (*Server).openAPI,
	},
	{
		method: "GET", path: "/api/tools", need: access.ToRead, summary: "The catalogue of tools",
		query: []parameter{{"name", "string", "only the tool of this name; no other one is described for it"}},
		child: true, status: http.StatusOK, out: reflect.TypeFor[api.Tools](), handle: (*Server).tools,
	},
	{
		method: "GET", path: "/api/workers", need: access.ToManage, summary: "The workers of the daemon's fleet",
		status: http.StatusOK, out: reflect.TypeFor[api.Workers](), handle: (*Server).workers, refuses: []string{codeNotFound},
	},
	{
		method: "POST", path: "/api/workers/{worker}/drain", need: access.ToManage, summary: "Have a worker take no more calls, and end when it has none",
		status: http.StatusOK, out: reflect.TypeFor[api.Done](), refuses: []string{codeNotFound}, handle: (*Server).drainWorker,
	},
	{
		method: "POST", path: "/api/workers/{worker}/remove", need: access.ToManage, summary: "Take a worker out of the fleet at once: what it runs is ended, and its key does not let it in any more",
		status: http.StatusOK, out: reflect.TypeFor[api.Done](), refuses: []string{codeNotFound, codeUnready}, handle: (*Server).removeWorker,
	},
	{
		method: "POST", path: "/api/turns", need: access.ToCall, summary: "Begin a turn", in: reflect.TypeFor[api.TurnSpec](),
		child: true, status: http.StatusCreated, out: reflect.TypeFor[api.Turn](), handle: (*Server).begin,
		stream:  ofTurn + ". Closing this stream aborts the turn and ends it",
		refuses: []string{codeNotFound, codeConflict, codeUnready, codeBusy, codeQuota},
	},
	{
		method: "POST", path: "/api/calls", need: access.ToCall, summary: "Run a batch of calls in a turn of its own, which ends with it, and wait for the results. Disconnecting before them aborts the turn",
		in: reflect.TypeFor[api.BatchTurn](), child: true, status: http.StatusOK, out: reflect.TypeFor[api.Results](), handle: (*Server).runAlone,
		stream:  "the turn's events, and then one of kind results with the body of the JSON answer",
		refuses: []string{codeNotFound, codeConflict, codeUnready, codeBusy, codeQuota},
	},
	{
		method: "GET", path: "/api/turns/active", need: access.ToRead, summary: "All active turns, oldest first",
		status: http.StatusOK, out: reflect.TypeFor[api.Turns](), handle: (*Server).active,
	},
	{
		method: "GET", path: "/api/turns/{turnId}", need: access.ToRead, summary: "An active turn",
		child: true, status: http.StatusOK, out: reflect.TypeFor[api.Turn](), refuses: []string{codeNotFound}, handle: (*Server).turn,
	},
	{
		method: "POST", path: "/api/turns/{turnId}/calls", need: access.ToCall, summary: "Run a batch of calls, and wait for the results. Disconnecting before them aborts the turn",
		in: reflect.TypeFor[api.Batch](), child: true, status: http.StatusOK, out: reflect.TypeFor[api.Results](), handle: (*Server).run,
		stream:  "the turn's events while the batch runs, and then one of kind results with the body of the JSON answer",
		refuses: []string{codeNotFound, codeConflict, codeUnready, codeBusy, codeQuota},
	},
	{
		method: "POST", path: "/api/turns/{turnId}/model", need: access.ToCall, summary: "Tell when the model streams. Its time in the turn is bounded; when it is used up the turn is aborted",
		in: reflect.TypeFor[api.Model](), child: true, status: http.StatusOK, out: reflect.TypeFor[api.Turn](), refuses: []string{codeNotFound, codeConflict}, handle: (*Server).model,
	},
	{
		method: "POST", path: "/api/turns/{turnId}/abort", need: access.ToCall, summary: "Abort a turn's calls; again, while they end, kills at once",
		child: true, status: http.StatusOK, out: reflect.TypeFor[api.Done](), refuses: []string{codeNotFound}, handle: (*Server).abort,
	},
	{
		method: "POST", path: "/api/turns/{turnId}/abort-tool/{callId}", need: access.ToCall, summary: "Abort one call; the turn goes on",
		child: true, status: http.StatusOK, out: reflect.TypeFor[api.Done](), refuses: []string{codeNotFound}, handle: (*Server).abortCall,
	},
	{
		method: "POST", path: "/api/turns/{turnId}/end", need: access.ToCall, summary: "End a turn; a batch that runs is aborted first",
		child: true, status: http.StatusOK, out: reflect.TypeFor[api.Done](), refuses: []string{codeNotFound}, handle: (*Server).end,
	},
	{
		method: "GET", path: "/api/turns/{turnId}/events", need: access.ToRead, summary: "Watch a turn. Last-Event-ID, or after, resumes behind an event",
		query: []parameter{after}, resumes: true, child: true, status: http.StatusOK, stream: ofTurn, kind: eventStream,
		refuses: []string{codeNotFound, codeBusy, codeQuota}, handle: (*Server).events,
	},
	{
		method: "POST", path: "/api/turns/{turnId}/interactions", need: access.ToCall, summary: "Ask a human, and wait for what comes of it. Disconnecting before it takes the question back",
		in: reflect.TypeFor[api.Question](), status: http.StatusOK, out: reflect.TypeFor[api.Raised](), refuses: []string{codeNotFound, codeUnready}, handle: (*Server).raise,
	},
	{
		method: "GET", path: "/api/interactions", need: access.ToSeeQuestions, summary: "All questions that wait for a human",
		status: http.StatusOK, out: reflect.TypeFor[api.Interactions](), handle: (*Server).interactions,
	},
	{
		method: "POST", path: "/api/interactions/{interactionId}/answer", need: access.ToAnswer, summary: "Answer a question", in: reflect.TypeFor[api.Answer](),
		status: http.StatusOK, out: reflect.TypeFor[api.Done](), refuses: []string{codeNotFound}, handle: (*Server).answer,
	},
	{
		method: "GET", path: "/api/approvals", need: access.ToSeeQuestions, summary: "What people have approved for more than one call, the oldest first",
		status: http.StatusOK, out: reflect.TypeFor[api.Approvals](), handle: (*Server).approvals,
	},
	{
		method: "POST", path: "/api/approvals/{approvalId}/revoke", need: access.ToRevoke, summary: "Take an approval back: what goes by it is asked about again",
		status: http.StatusOK, out: reflect.TypeFor[api.Done](), refuses: []string{codeNotFound, codeUnready}, handle: (*Server).revokeApproval,
	},
	{
		method: "GET", path: "/api/history/turns", need: access.ToRead, summary: "Turns on record, the last started first", query: filters,
		status: http.StatusOK, out: reflect.TypeFor[api.TurnSummaries](), refuses: []string{codeNoHistory}, handle: (*Server).pastTurns,
	},
	{
		method: "GET", path: "/api/history/calls", need: access.ToRead, summary: "Calls on record, the last queued first",
		query:  append([]parameter{{"turn", "string", "only of this turn"}}, filters...),
		status: http.StatusOK, out: reflect.TypeFor[api.CallSummaries](), refuses: []string{codeNoHistory}, handle: (*Server).pastCalls,
	},
	{
		method: "GET", path: "/api/history/turns/{turnId}/events", need: access.ToRead, summary: "Replay a turn: its events exactly as they were shown, one a line",
		query: []parameter{after}, resumes: true, status: http.StatusOK, kind: ndjson, refuses: []string{codeNotFound, codeNoHistory}, handle: (*Server).replay,
	},
	{
		method: "GET", path: "/api/history/turns/{turnId}/calls/{callId}", need: access.ToRead, summary: "The result of a call on record",
		status: http.StatusOK, out: reflect.TypeFor[api.Result](), refuses: []string{codeNotFound, codeNoHistory}, handle: (*Server).pastResult,
	},
	{
		method: "POST", path: "/api/login-links", need: access.ToOpen, summary: "Make a link that lets one browser in, once, for the client itself",
		status: http.StatusCreated, out: reflect.TypeFor[api.LoginLink](), refuses: []string{codeBusy, codeUnready}, handle: (*Server).loginLink,
	},
	{
		method: "POST", path: loginPath, summary: "Open a login link: gives the token of a browser's session, which acts for who made the link", public: true,
		in: reflect.TypeFor[api.Login](), status: http.StatusOK, out: reflect.TypeFor[api.Session](), refuses: []string{codeThrottled, codeUnready}, handle: (*Server).login,
	},
	{
		method: "GET", path: "/api/whoami", need: access.ToAsk, summary: "Who the daemon takes the client for",
		status: http.StatusOK, out: reflect.TypeFor[api.Whoami](), handle: (*Server).whoami,
	},
	{
		method: "POST", path: "/api/logout", need: access.ToAsk, summary: "End the browser's session",
		status: http.StatusOK, out: reflect.TypeFor[api.Done](), handle: (*Server).logout,
	},
}

// mux has each path answer its own method, and no other: serve refuses those.
func (s *Server) mux() *http.ServeMux {
	mux := s.muxOf(func(route) bool { return true }, s.fallback)
	for path, mount := range s.config.Mounts {
		mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) { s.mounted(w, r, mount) })
	}
	return mux
}

// muxOf has some of the routes, and otherwise for all else.
func (s *Server) muxOf(has func(route) bool, otherwise http.HandlerFunc) *http.ServeMux {
	mux := http.NewServeMux()
	for _, route := range routes {
		if !has(route) { // lest its last word is taken for an id
			mux.HandleFunc(pattern(route.path), otherwise)
			continue
		}
		mux.HandleFunc(pattern(route.path), func(w http.ResponseWriter, r *http.Request) {
			if strings.Count(r.URL.EscapedPath(), "/") != strings.Count(route.path, "/") {
				otherwise(w, r)
				return
			}
			s.serve(w, r, route)
		})
	}
	mux.HandleFunc("/", otherwise)
	return mux
}

// pattern has the mux take what is left of a path for its last id: an id that is
// nothing but an encoded / it would take for the end of the path.
func pattern(path string) string {
	if whole, ok := strings.CutSuffix(path, "}"); ok {
		return whole + "...}"
	}
	return path
}
