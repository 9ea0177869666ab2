/** Messages -> messages with tool-call arguments parsed from JSON text. */
import { isObject, parseJson } from '../common/index.ts';

type Fields = Readonly<Record<string, unknown>>;

function isFields(value: unknown): value is Fields {
  return isObject(value) && !(value instanceof Map);
}

/** Returns a copy of the messages with parsed arguments, or null if nothing was parsed. */
export function parseToolArguments(messages: readonly unknown[]): readonly unknown[] | null {
  let isChanged = false;
  const parseCall = (call: unknown): unknown => {
    if (!isFields(call)) return call;
    if (isFields(call['function'])) {
      const inner = parseCall(call['function']);
      return inner === call['function'] ? call : { ...call, function: inner };
    }
    const parsed = parseObject(call['arguments']);
    if (parsed === null) return call;
    isChanged = true;
    return { ...call, arguments: parsed };
  };
  const result = messages.map((message) => {
    if (!isFields(message) || !Array.isArray(message['tool_calls'])) return message;
    const calls: readonly unknown[] = message['tool_calls'];
    return { ...message, tool_calls: calls.map(parseCall) };
  });
  return isChanged ? result : null;
}

/** Returns the object of a JSON text, or null for any other text. */
function parseObject(text: unknown): Fields | null {
  const value = typeof text === 'string' ? parseJson(text) : null;
  return isFields(value) ? value : null;
}
