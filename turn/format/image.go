package format

import (
	"bytes"
	"encoding/binary"
)

// imageType is the type of an image that models can see, by its first bytes;
// empty for any other data.
func imageType(data []byte) string {
	switch {
	case bytes.HasPrefix(data, []byte("\x89PNG\r\n\x1a\n")):
		return "image/png"
	case bytes.HasPrefix(data, []byte("\xff\xd8\xff")):
		return "image/jpeg"
	case bytes.HasPrefix(data, []byte("GIF87a")), bytes.HasPrefix(data, []byte("GIF89a")):
		return "image/gif"
	case len(data) > 12 && string(data[:4]) == "RIFF" && string(data[8:12]) == "WEBP":
		return "image/webp"
	}
	return ""
}

// imageSize is the size in pixels of an image of a known type, by its header; zeros if that
// does not say.
func imageSize(data []byte) (width, height int) {
	little, big := binary.LittleEndian, binary.BigEndian
	switch kind := imageType(data); {
	case kind == "image/png" && len(data) >= 24 && string(data[12:16]) == "IHDR":
		return int(big.Uint32(data[16:])), int(big.Uint32(data[20:]))
	case kind == "image/gif" && len(data) >= 10:
		return int(little.Uint16(data[6:])), int(little.Uint16(data[8:]))
	case kind == "image/webp" && len(data) >= 30:
		return webpSize(data)
	case kind == "image/jpeg":
		return jpegSize(data)
	}
	return 0, 0
}

// webpSize is by the first chunk (RFC 9649).
func webpSize(data []byte) (width, height int) {
	little := binary.LittleEndian
	switch string(data[12:16]) {
	case "VP8X":
		return int(little.Uint32(data[24:])&0xffffff) + 1, int(little.Uint32(data[26:])>>8) + 1
	case "VP8L":
		bits := little.Uint32(data[21:])
		return int(bits&0x3fff) + 1, int(bits>>14&0x3fff) + 1
	case "VP8 ":
		return int(little.Uint16(data[26:]) & 0x3fff), int(little.Uint16(data[28:]) & 0x3fff)
	}
	return 0, 0
}

// jpegSize is by the first frame header (ITU-T T.81), behind any other segments.
func jpegSize(data []byte) (width, height int) {
	for at := 2; at+9 <= len(data) && data[at] == 0xff; {
		switch marker := data[at+1]; {
		case marker == 0xff: // a fill byte
			at++
		case marker >= 0xc0 && marker <= 0xcf && marker != 0xc4 && marker != 0xc8 && marker != 0xcc:
			return int(binary.BigEndian.Uint16(data[at+7:])), int(binary.BigEndian.Uint16(data[at+5:]))
		default:
			at += 2 + int(binary.BigEndian.Uint16(data[at+2:]))
		}
	}
	return 0, 0
}
