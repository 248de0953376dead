package report

import (
	"testing"

	"example.com/checkout/gate/internal/store"
)

func TestDir(t *testing.T) { store.Open("").Dir() }
