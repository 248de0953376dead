package identity

import "io"

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
