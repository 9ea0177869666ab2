"""Reads {"template", "kwargs"} lines, writes {"output"} or {"error"} lines: Jinja2 as chat templates configure it."""
import json
import sys

from jinja2.sandbox import ImmutableSandboxedEnvironment

environment = ImmutableSandboxedEnvironment(
    trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"]
)
environment.filters["tojson"] = lambda value, ensure_ascii=False, indent=None, separators=None, sort_keys=False: (
    json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)
)
for line in sys.stdin:
    row = json.loads(line)
    try:
        answer = {"output": environment.from_string(row["template"]).render(**row["kwargs"])}
    except Exception as error:
        answer = {"error": f"{type(error).__name__}: {error}"}
    print(json.dumps(answer))
