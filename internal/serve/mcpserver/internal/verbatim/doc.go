// Package verbatim has what wrapped servers and clients have written passed on as they have
// written it. The SDK has no place for fields that it does not know, and reads numbers as
// floats: the text goes beside the SDK's types, and takes their place where they are encoded.
package verbatim
