// Package schema holds the JSON Schemas of the files that users write, and makes
// those of the files that gate writes from the types that it writes.
package schema

import (
	"embed"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"github.com/kernelgate/gate/gate/internal/evidence"
	"github.com/kernelgate/gate/gate/internal/verdict"
)

// Names are the schemas, in the order in which they are listed.
var Names = []string{"policy", "kernel", "op", "evidence", "verdict"}

//go:embed policy.json kernel.json op.json
var written embed.FS

// Of is the schema of a name, as indented JSON.
func Of(name string) ([]byte, error) {
	switch name {
	case "evidence":
		return generate("a record of evidence of gate", evidence.Schema, reflect.TypeFor[evidence.Record]())
	case "verdict":
		return generate("verdict.json of gate", verdict.Schema, reflect.TypeFor[verdict.Verdict]())
	}
	return written.ReadFile(name + ".json")
}

type object = map[string]any

func generate(title, layout string, t reflect.Type) ([]byte, error) {
	g := generator{definitions: object{}}
	out := g.structure(t)
	out["$schema"], out["title"] = "http://json-schema.org/draft-07/schema#", title
	out["properties"].(object)["schema"] = object{"const": layout}
	out["definitions"] = g.definitions
	data, err := json.MarshalIndent(out, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("writing the schema: %w", err)
	}
	return append(data, '\n'), nil
}

// A generator says of types what JSON they are written as.
type generator struct{ definitions object }

// special are the types that write themselves.
var special = map[reflect.Type]object{
	reflect.TypeFor[evidence.Value](): {"type": "object", "additionalProperties": false,
		"properties": object{"value": object{"type": "number"}, "unit": object{"type": "string"}, "where": object{"type": "string"},
			"missing": object{"type": "string", "minLength": 1, "description": "why there is no value"}},
		"oneOf": []any{object{"required": []string{"value"}}, object{"required": []string{"missing"}}}},
	reflect.TypeFor[verdict.Status](): {"enum": []string{"inconclusive", "not-compared", "pass", "warn", "fail"}},
}

func (g generator) of(t reflect.Type) object {
	if s, ok := special[t]; ok {
		return g.define(t, func() object { return s })
	}
	switch t.Kind() {
	case reflect.Pointer:
		return object{"anyOf": []any{g.of(t.Elem()), object{"type": "null"}}}
	case reflect.Bool:
		return object{"type": "boolean"}
	case reflect.String:
		return object{"type": "string"}
	case reflect.Float64, reflect.Float32:
		return object{"type": "number"}
	case reflect.Slice:
		return object{"type": []string{"array", "null"}, "items": g.of(t.Elem())}
	case reflect.Array:
		return object{"type": "array", "items": g.of(t.Elem()), "minItems": t.Len(), "maxItems": t.Len()}
	case reflect.Map:
		return object{"type": []string{"object", "null"}, "additionalProperties": g.of(t.Elem())}
	case reflect.Struct:
		return g.define(t, func() object { return g.structure(t) })
	}
	return object{"type": "integer"}
}

// define gives a type a place of its own, which others refer to.
func (g generator) define(t reflect.Type, body func() object) object {
	name := t.String() // with its package
	if g.definitions[name] == nil {
		g.definitions[name] = object{} // a type may hold itself
		g.definitions[name] = body()
	}
	return object{"$ref": "#/definitions/" + name}
}

func (g generator) structure(t reflect.Type) object {
	properties, required := object{}, []string{}
	g.fields(t, properties, &required)
	return object{"type": "object", "additionalProperties": false, "properties": properties, "required": required}
}

// fields enters those of an embedded type as the type's own.
func (g generator) fields(t reflect.Type, properties object, required *[]string) {
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && name == "":
			g.fields(f.Type, properties, required)
		case f.IsExported() && name != "-":
			properties[name] = g.of(f.Type)
			if !strings.Contains(options, "omit") {
				*required = append(*required, name)
			}
		}
	}
}
