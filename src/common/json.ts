/** A text -> its JSON value; and whether that is an object. */

/** The value of a JSON text; `otherwise`, which is undefined by default, for any other text. */
export function parseJson(text: string, otherwise?: unknown): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return otherwise;
  }
}

/** Whether a value has fields: neither null nor a list. */
export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
