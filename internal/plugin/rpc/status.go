package rpc

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/grpc/codes"

	"github.com/toolhost/toolhost/internal/text"
)

// Error is a status of gRPC other than OK.
type Error struct {
	Code    codes.Code
	Message string
	// Details is an encoded google.rpc.Status, or nil.
	Details []byte
}

func (e *Error) Error() string { return e.Code.String() + ": " + e.Message }

// Errorf returns an *Error.
func Errorf(code codes.Code, format string, args ...any) error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// StatusOf is what an error is as a status: Unknown if it says nothing else.
func StatusOf(err error) *Error {
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	switch {
	case err == nil:
		return &Error{}
	case errors.Is(err, context.DeadlineExceeded):
		return &Error{Code: codes.DeadlineExceeded, Message: err.Error()}
	case errors.Is(err, context.Canceled):
		return &Error{Code: codes.Canceled, Message: err.Error()}
	}
	return &Error{Code: codes.Unknown, Message: err.Error()}
}

// What of a status is sent: with three bytes for one of the text it fits one frame.
const maxStatusBytes = 2 << 10

const (
	statusField  = "grpc-status"
	messageField = "grpc-message"
	detailsField = "grpc-status-details-bin"
)

// trailer is the fields of a status.
func (e *Error) trailer() []hpack.HeaderField {
	fields := []hpack.HeaderField{{Name: statusField, Value: strconv.Itoa(int(e.Code))}}
	if e.Message != "" {
		fields = append(fields, hpack.HeaderField{Name: messageField, Value: percentEncode(text.Bytes(e.Message, maxStatusBytes))})
	}
	if e.Details != nil && len(e.Details) <= maxStatusBytes {
		fields = append(fields, hpack.HeaderField{Name: detailsField, Value: base64.RawStdEncoding.EncodeToString(e.Details)})
	}
	return fields
}

// readTrailer is the end that a trailer says: io.EOF for OK, or an *Error.
func readTrailer(frame *http2.MetaHeadersFrame) error {
	e := &Error{Code: codes.Unknown, Message: "the trailer has no " + statusField}
	for _, f := range frame.RegularFields() {
		switch f.Name {
		case statusField:
			code, err := strconv.ParseUint(f.Value, 10, 32)
			if err != nil {
				return Errorf(codes.Internal, "malformed %s %q", statusField, text.Bytes(f.Value, 32))
			}
			if e.Code = codes.Code(code); e.Message == "the trailer has no "+statusField {
				e.Message = ""
			}
		case messageField:
			e.Message = percentDecode(f.Value)
		case detailsField:
			details, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(f.Value, "="))
			if err != nil {
				return Errorf(codes.Internal, "malformed %s", detailsField)
			}
			e.Details = details
		}
	}
	if e.Code == codes.OK {
		return io.EOF
	}
	return e
}

func percentEncode(s string) string {
	var b strings.Builder
	for _, c := range []byte(s) {
		if c >= ' ' && c <= '~' && c != '%' {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}

// percentDecode leaves alone what is not encoded well.
func percentDecode(s string) string {
	if !strings.Contains(s, "%") {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '%' && i+2 < len(s) {
			if c, err := strconv.ParseUint(s[i+1:i+3], 16, 8); err == nil {
				b.WriteByte(byte(c))
				i += 2
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// codeOfReset is the status of a stream that the other side has reset.
func codeOfReset(code http2.ErrCode) codes.Code {
	switch code {
	case http2.ErrCodeCancel:
		return codes.Canceled
	case http2.ErrCodeRefusedStream:
		return codes.Unavailable
	case http2.ErrCodeEnhanceYourCalm, http2.ErrCodeFlowControl:
		return codes.ResourceExhausted
	case http2.ErrCodeInadequateSecurity:
		return codes.PermissionDenied
	}
	return codes.Internal
}

// codeOfHTTP is the status of an answer that is not gRPC's.
func codeOfHTTP(status string) codes.Code {
	switch status {
	case "400":
		return codes.Internal
	case "401":
		return codes.Unauthenticated
	case "403":
		return codes.PermissionDenied
	case "404":
		return codes.Unimplemented
	case "429", "502", "503", "504":
		return codes.Unavailable
	}
	return codes.Unknown
}
