package identity

import (
	"fmt"
	"io"
)

// maxSourceBytes bounds a source file.
const maxSourceBytes = 256 << 20

// SourceHash returns a hash over the tokens of a C or C++ file, preprocessor directives included; comments and white
// space have no part in it. The name is for messages only.
func SourceHash(r io.Reader, name string) (string, error) {
	data, err := readSource(r, name)
	if err != nil {
		return "", err
	}
	x := newLexer(data)
	x.lenient = true
	out := newRecipe(sourceRecipe)
	for {
		k, text := x.next()
		if k == kindEnd {
			break
		}
		out.token(k, text)
	}
	if x.err != nil {
		e := x.err.(*formatError)
		e.File = name
		return "", e
	}
	return out.hex(), nil
}

func readSource(r io.Reader, name string) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxSourceBytes+1))
	if err != nil {
		return nil, fmt.Errorf("reading source: %w", err)
	}
	if len(data) > maxSourceBytes {
		return nil, &formatError{File: name, Msg: fmt.Sprintf("source of more than %d bytes", maxSourceBytes)}
	}
	return data, nil
}
