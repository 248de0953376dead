package ncu

import (
	"encoding/binary"
	"errors"
	"math"
)

// The reader of protobuf's wire format: enough of it for reports, without the
// definitions of the messages. It never recurses; each caller descends by hand
// into the fields that it knows.

var (
	errVarint   = errors.New("a number does not end")
	errWireType = errors.New("a field has an unknown wire type")
	errLength   = errors.New("a field is longer than its message")
)

const (
	wireVarint = 0
	wire64     = 1
	wireBytes  = 2
	wire32     = 5
)

// A field is one entry of a message.
type field struct {
	num   int
	wire  int
	value uint64 // of a varint, a 32-bit or a 64-bit field
	bytes []byte // of a length-delimited field
}

// next cuts the first field off a message.
func nextWire(b []byte) (field, []byte, error) {
	tag, b, err := varint(b)
	if err != nil {
		return field{}, nil, err
	}
	f := field{num: int(tag >> 3 & math.MaxInt32), wire: int(tag & 7)}
	switch f.wire {
	case wireVarint:
		f.value, b, err = varint(b)
	case wire64:
		if len(b) < 8 {
			return f, nil, errLength
		}
		f.value, b = binary.LittleEndian.Uint64(b), b[8:]
	case wire32:
		if len(b) < 4 {
			return f, nil, errLength
		}
		f.value, b = uint64(binary.LittleEndian.Uint32(b)), b[4:]
	case wireBytes:
		var n uint64
		if n, b, err = varint(b); err != nil {
			return f, nil, err
		}
		if n > uint64(len(b)) {
			return f, nil, errLength
		}
		f.bytes, b = b[:n], b[n:]
	default:
		return f, nil, errWireType
	}
	return f, b, err
}

func varint(b []byte) (uint64, []byte, error) {
	v, n := binary.Uvarint(b)
	if n <= 0 {
		return 0, nil, errVarint
	}
	return v, b[n:], nil
}

// eachField calls do for every field of a message.
func eachField(b []byte, do func(f field) error) error {
	for len(b) > 0 {
		f, rest, err := nextWire(b)
		if err != nil {
			return err
		}
		if err := do(f); err != nil {
			return err
		}
		b = rest
	}
	return nil
}
