/** Calls of an answer -> their functions: none is of a custom tool. */
import type { ResponseFunctionCall, ResponseToolCall } from '../../src/protocol/index.ts';

export function functionsOf(calls: readonly ResponseToolCall[]): ResponseFunctionCall[] {
  return calls.map((call) => {
    if (call.type !== 'function') throw new Error(`${call.custom.name} is a custom tool`);
    return call.function;
  });
}
