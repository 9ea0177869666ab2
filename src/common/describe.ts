/** A value of any kind -> a few words for the message of an error. */

/** Describes any value in a few words. */
export function describe(value: unknown): string {
  try {
    return readInWords(value);
  } catch {
    return 'a value that cannot be read'; // a revoked proxy
  }
}

function readInWords(value: unknown): string {
  if (typeof value === 'string') return clip(JSON.stringify(value.slice(0, 80)));
  if (typeof value === 'bigint') return `${clip(String(value))}n`;
  if (typeof value === 'symbol' || typeof value === 'function') return `a ${typeof value}`;
  if (Array.isArray(value)) return value.length === 0 ? 'an empty list' : `a list of ${value.length}`;
  if (typeof value === 'object' && value !== null) return objectWords(value);
  return value === undefined ? 'nothing' : String(value);
}

/** "an object", or the kind of a built-in one: "a Map". */
function objectWords(value: object): string {
  const kind = Object.prototype.toString.call(value).slice('[object '.length, -1);
  return kind === 'Object' ? 'an object' : `a value of type ${clip(kind)}`;
}

/** Cuts a text to a length. */
export function clip(text: string, length = 80): string {
  return text.length <= length ? text : `${text.slice(0, length - 3)}...`;
}
