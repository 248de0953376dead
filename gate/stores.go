package main

import (
	// The object stores that gate can reach. They are linked here alone, since
	// they are more code than the rest of gate.
	_ "gocloud.dev/blob/azureblob"
	_ "gocloud.dev/blob/s3blob"
)
