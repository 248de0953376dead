"""Says which cuBLAS is installed, and how C++ is compiled and linked with it."""

import json
import pathlib
import re

home = pathlib.Path("/usr/local/cuda").resolve()
text = (home / "include" / "cublas_api.h").read_text()
number = [re.search(rf"#define CUBLAS_VER_{part} (\d+)", text)[1] for part in ("MAJOR", "MINOR", "PATCH")]
print(json.dumps({
    "versions": {"cublas": ".".join(number)},
    "compile": ["-isystem", str(home / "include")],
    "link": ["-L", str(home / "lib64"), f"-Wl,-rpath,{home / 'lib64'}", "-lcublas"],
    "read": [str(home)],
}))
