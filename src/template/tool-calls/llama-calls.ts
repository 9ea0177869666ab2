/** Text of Llama 3: JSON, or JSON or a Python call after `<|python_tag|>` -> calls. Other Python code is text. */
import { type Family, NOT_A_CALL } from './context.ts';
import { bareJsonCalls, readJsonCalls } from './json-calls.ts';
import { readPythonCall } from './python-calls.ts';

const PYTHON_TAG = '<|python_tag|>';

/** Returns the family of Llama 3's calls. */
export function llamaCalls(): Family {
  const bare = bareJsonCalls({});
  return {
    markers: [PYTHON_TAG, ...bare.markers],
    literals: [PYTHON_TAG],
    *read(context, marker) {
      if (marker !== PYTHON_TAG) return yield* bare.read(context, marker);
      yield* context.reader.space();
      const next = yield* context.reader.peek();
      if (next === '{' || next === '[') return yield* readJsonCalls(context, { begins: [] });
      if (next === '') throw NOT_A_CALL;
      yield* readPythonCall(context, (name) => context.tools.has(name));
    },
  };
}
