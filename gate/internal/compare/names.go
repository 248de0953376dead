package compare

import "fmt"

// nameOf returns the word for a named constant, or its number.
func nameOf[K ~uint8](names map[K]string, k K) string {
	if s, ok := names[k]; ok {
		return s
	}
	return fmt.Sprintf("unnamed(%d)", uint8(k))
}

// marshalName writes a named constant as its word.
func marshalName[K ~uint8](names map[K]string, k K) ([]byte, error) {
	s, ok := names[k]
	if !ok {
		return nil, fmt.Errorf("value %d of %T has no name", uint8(k), k)
	}
	return []byte(s), nil
}

// unmarshalName reads a word back.
func unmarshalName[K ~uint8](names map[K]string, k *K, text []byte) error {
	for key, s := range names {
		if s == string(text) {
			*k = key
			return nil
		}
	}
	return fmt.Errorf("unknown %T %q", *k, string(text))
}
