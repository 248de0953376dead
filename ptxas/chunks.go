package ptxas

// chunkSize is the number of records that are allocated together.
const chunkSize = 512

// A chunked list grows without copying what it holds again and again.
type chunked[T any] struct {
	chunks [][]T
	n      int
}

// add appends a zero record. The pointer is valid until the next call.
func (c *chunked[T]) add() *T {
	if c.n%chunkSize == 0 {
		size := chunkSize
		if c.n == 0 {
			size = 16 // most texts are short; the first chunk grows once
		}
		c.chunks = append(c.chunks, make([]T, 0, size))
	}
	last := &c.chunks[len(c.chunks)-1]
	if len(*last) == cap(*last) {
		*last = append(make([]T, 0, chunkSize), *last...)
	}
	*last = (*last)[:len(*last)+1]
	c.n++
	return &(*last)[len(*last)-1]
}

// flatten returns the records as one slice and empties the list.
func (c *chunked[T]) flatten() []T {
	if len(c.chunks) == 1 {
		return c.chunks[0]
	}
	flat := make([]T, 0, c.n)
	for i, chunk := range c.chunks {
		flat = append(flat, chunk...)
		c.chunks[i] = nil
	}
	return flat
}
