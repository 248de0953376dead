package compare

import "fmt"

// nameOf returns the word for a named constant, or its number.
func nameOf[K ~uint8](names map[K]string, k K) string {
	if s, ok := names[k]; ok {
		return s
	}
	return fmt.Sprintf("unnamed(%d)", uint8(k))
}
