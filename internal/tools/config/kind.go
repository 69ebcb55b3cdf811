package config

import (
	"cmp"
	"errors"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/docker/go-units"
	"github.com/google/jsonschema-go/jsonschema"

	"github.com/toolhost/toolhost/budget"
	"github.com/toolhost/toolhost/internal/lazy"
	"github.com/toolhost/toolhost/supervisor"
)

// kind is a form of values.
type kind struct {
	name   string
	schema *jsonschema.Schema
	// read takes a node's value. Where it cannot, it says why in one phrase that
	// goes on from the quoted value.
	read func(r *reader, n *node) (data any, wrong string)
	// write shows the value as YAML; nil shows it as it was written.
	write func(data any) string
}

// scalar is a kind whose values are one word each, in any notation of YAML.
func scalar(name, pattern string, parse func(string) (data any, wrong string)) *kind {
	k := &kind{name: name, schema: &jsonschema.Schema{Type: "string", Pattern: pattern}}
	k.read = func(_ *reader, n *node) (any, string) {
		if n.shape != str && n.shape != number {
			return nil, "is not a " + name
		}
		return parse(n.value)
	}
	return k
}

// scalarLike is a scalar of a form, kept as it is written; wrong says of others what is wrong
// with them.
func scalarLike(name, pattern, wrong string) *kind {
	form := lazy.Regexp(pattern)
	return scalar(name, pattern, func(s string) (any, string) {
		if !form().MatchString(s) {
			return nil, wrong
		}
		return s, ""
	})
}

// or lets editors take numbers, too.
func (k *kind) orNumber() *kind {
	k.schema = &jsonschema.Schema{AnyOf: []*jsonschema.Schema{{Type: "integer", Minimum: new(1.0)}, k.schema}}
	return k
}

// Words for no limit: of durations, and of sizes and numbers, as budget and
// systemd have them. Each is taken for the other.
const (
	infinite = "infinite"
	infinity = "infinity"
)

func unlimited(s string) bool { return s == infinite || s == infinity }

const (
	durationPattern = `^([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$`
	sizePattern     = `^[0-9]+(\.[0-9]+)? ?([KMGTPkmgtp]i?)?[Bb]?$`
	orUnlimited     = `|^(infinite|infinity)$`
)

var (
	durationKind  = scalar("duration", durationPattern, positiveDuration)
	finiteTimeout = scalar("duration", durationPattern, func(s string) (any, string) {
		if unlimited(s) {
			return nil, finiteOnly
		}
		return positiveDuration(s)
	})
	timeoutKind = held(scalar("duration, or infinite", durationPattern+orUnlimited, func(s string) (any, string) {
		if unlimited(s) {
			return budget.Infinite, ""
		}
		return noLimitIs(infinite+", in a tool's own entry only", s)(positiveDuration(s))
	}), 0)
	durationOrInfinite       = scalar("duration, or infinite", durationPattern+orUnlimited, orInfinite(positiveDuration))
	graceKind                = held(scalar("duration up to 30s", durationPattern+"|^0$", parseGrace), budget.NoGrace)
	startKind                = scalar("duration up to 55s", durationPattern, parseStart)
	sizeKind                 = scalar("size", sizePattern, parseSize).orNumber()
	sizeOrInfinity           = scalar("size, or infinity", sizePattern+orUnlimited, orInfinity(parseSize)).orNumber()
	countKind                = scalar("number", `^[0-9]+$`, parseCount).orNumber()
	countOrInfinity          = scalar("number, or infinity", `^[0-9]+$`+orUnlimited, orInfinity(parseCount)).orNumber()
	percentOrInfinity        = scalar("percent of one CPU, or infinity", `^[0-9]+%$`+orUnlimited, orInfinity(parsePercent))
	percentKind              = scalar("percent of one CPU", `^[0-9]+%$`, parsePercent)
	prestartKind             = scalar("number from 1 to "+strconv.Itoa(supervisor.MaxPrestart), `^[0-9]+$`, parsePrestart).orNumber()
	weightKind               = scalar("number from 1 to 10000", `^[0-9]+$`, parseWeight).orNumber()
	hashKind                 = scalar("SHA-256 in hexadecimal", `^[0-9A-Fa-f]{64}$`, parseHash)
	finiteOnly               = "may not be infinite here: only a tool's own entry may lift its timeout; write a duration such as 30s"
	hashForm                 = lazy.Regexp(`^[0-9A-Fa-f]{64}$`)
	sizeForm                 = lazy.Regexp(sizePattern)
	zeroForm                 = lazy.Regexp(`^[0.]+ ?[A-Za-zµ%]*$`)
	numberForm               = lazy.Regexp(`^[0-9]+$`)
	maxLimitBytes      int64 = 1 << 60
)

// held is for times that a flag may have out of bounds, to which calls are then held with
// a warning; zero is what its 0 stands for.
func held(k *kind, zero time.Duration) *kind {
	strict := k.read
	k.read = func(r *reader, n *node) (any, string) {
		d, wrong := parseDuration(n.value)
		switch {
		case n.file.layer != LayerFlag:
			return strict(r, n)
		case wrong == "" && d < 0:
			return nil, "is negative: write a duration such as 10s"
		}
		return cmp.Or(d, zero), wrong
	}
	return k
}

func orInfinite(parse func(string) (any, string)) func(string) (any, string) {
	return func(s string) (any, string) {
		if unlimited(s) {
			return budget.Infinite, ""
		}
		return noLimitIs(infinite, s)(parse(s))
	}
}

func orInfinity(parse func(string) (any, string)) func(string) (any, string) {
	return func(s string) (any, string) {
		if unlimited(s) {
			return supervisor.Unlimited, ""
		}
		return noLimitIs(infinity, s)(parse(s))
	}
}

// noLimitIs adds to a complaint about a value how no limit is written, where that
// may have been meant.
func noLimitIs(written, s string) func(data any, wrong string) (any, string) {
	return func(data any, wrong string) (any, string) {
		if wrong != "" && (budget.MeansNoLimit(s) || zeroForm().MatchString(s) || s == "-1") {
			wrong += "; no limit is written " + written
		}
		return data, wrong
	}
}

func parseDuration(s string) (time.Duration, string) {
	d, err := time.ParseDuration(s)
	switch {
	case unlimited(s):
		return 0, "may not be infinite: write a duration such as 30s, or leave it out"
	case err != nil && numberForm().MatchString(s):
		return 0, "has no unit: write " + s + "s for seconds, " + s + "ms for milliseconds"
	case budget.MeansNoLimit(s):
		return 0, "is not a duration: write one such as 30s, or leave it out"
	case d == budget.Infinite, err != nil && budget.IsTooLong(s):
		return 0, "is out of range: write " + budget.LongestDuration + " at most"
	case err != nil:
		return 0, "is not a duration: write one such as 30s, 1m30s or 500ms"
	}
	return d, ""
}

func positiveDuration(s string) (any, string) {
	d, wrong := parseDuration(s)
	if wrong == "" && d <= 0 {
		return nil, "is not positive: write a duration such as 30s, or leave it out"
	}
	return d, wrong
}

// parseGrace gives what supervisor and budget take, in which 0 is the default.
func parseGrace(s string) (any, string) {
	d, wrong := parseDuration(s)
	switch {
	case unlimited(s):
		return nil, "is over the ceiling of 30s: write at most 30s"
	case wrong != "":
		return nil, wrong
	case d < 0:
		return nil, "is negative: write 0s to kill at once, or up to 30s"
	case d > budget.MaxGrace:
		return nil, "is over the ceiling of 30s: write at most 30s"
	case d == 0:
		return budget.NoGrace, ""
	}
	return d, ""
}

// maxStart leaves some of the 60 s that a Describe may take at most.
const maxStart = 55 * time.Second

func parseStart(s string) (any, string) {
	d, wrong := positiveDuration(s)
	if wrong == "" && d.(time.Duration) > maxStart || unlimited(s) {
		return nil, "is over the ceiling of 55s: write at most 55s"
	}
	return d, wrong
}

// parseSize reads bytes. Units are powers of 1024, written MiB, MB or M, as
// those of the command line and of systemd.
func parseSize(s string) (any, string) {
	v, err := units.RAMInBytes(s)
	switch {
	case unlimited(s):
		return nil, "may not be unlimited: write a size such as 64MiB"
	case err != nil || !sizeForm().MatchString(s):
		return nil, "is not a size: write one such as 64MiB, or bytes"
	case v == 0:
		return nil, "is not positive: write a size such as 64MiB, or leave it out"
	case v < 0 || v > maxLimitBytes:
		return nil, "is out of range: write a size such as 64MiB"
	}
	return v, ""
}

func parseCount(s string) (any, string) {
	v, err := strconv.ParseInt(s, 10, 32)
	switch {
	case unlimited(s):
		return nil, "may not be unlimited: write a number"
	case errors.Is(err, strconv.ErrRange):
		return nil, "is out of range: write a number up to " + strconv.Itoa(math.MaxInt32)
	case err != nil || !numberForm().MatchString(strings.TrimPrefix(s, "-")):
		return nil, "is not a number: write one in plain digits"
	case v <= 0:
		return nil, "is not positive: write 1 or more, or leave it out"
	}
	return v, ""
}

func parsePercent(s string) (any, string) {
	digits, marked := strings.CutSuffix(s, "%")
	v, wrong := parseCount(digits)
	switch {
	case wrong != "":
		return nil, "is not a percentage: write one of one CPU, such as 100% or 250%"
	case !marked && v.(int64) <= 64:
		return nil, "has no %: write " + s + "00% for so many CPUs, or " + s + "% for that part of one"
	case !marked:
		return nil, "has no %: write " + s + "%"
	}
	return v, ""
}

func parseWeight(s string) (any, string) {
	v, wrong := parseCount(s)
	if weight, ok := v.(int64); wrong != "" || ok && weight > 10_000 {
		return nil, "is not a weight: write a number from 1 to 10000, 100 being the default"
	}
	return v, ""
}

func parsePrestart(s string) (any, string) {
	v, wrong := parseCount(s)
	if n, ok := v.(int64); ok && n > supervisor.MaxPrestart {
		return nil, "is too many: write a number from 1 to " + strconv.Itoa(supervisor.MaxPrestart)
	}
	return v, wrong
}

func parseHash(s string) (any, string) {
	if !hashForm().MatchString(s) {
		return nil, "is not a SHA-256: write 64 hexadecimal digits, as sha256sum prints them"
	}
	return strings.ToLower(s), ""
}

var boolKind = &kind{
	name: "true or false", schema: &jsonschema.Schema{Type: "boolean"},
	read: func(_ *reader, n *node) (any, string) {
		if n.shape != boolean {
			return nil, "is neither true nor false: write one of them, without quotes"
		}
		return n.value == "true", ""
	},
}

// enum is one of a few words.
func enum(words ...string) *kind {
	schema := &jsonschema.Schema{}
	for _, word := range words {
		schema.Enum = append(schema.Enum, word)
	}
	return &kind{name: listed(words, "or"), schema: schema, read: func(_ *reader, n *node) (any, string) {
		for _, word := range words {
			if n.shape == str && n.value == word {
				return word, ""
			}
		}
		if n.shape != str && n.shape != number && n.shape != boolean {
			return nil, "must be one of " + strings.Join(words, ", ")
		}
		return nil, "is unknown: " + suggestion(n.value, words)
	}}
}

const maxTextRunes = 8192

// textKind is text for people or models: taken as it is.
var textKind = &kind{
	name: "text", schema: &jsonschema.Schema{Type: "string"},
	read: func(_ *reader, n *node) (any, string) {
		switch {
		case n.shape != str:
			return nil, "is not text: write it in quotes"
		case len([]rune(n.value)) > maxTextRunes:
			return nil, "has more than 8192 characters: shorten it"
		}
		return n.value, ""
	},
}
