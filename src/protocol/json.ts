/** Free-form values -> the first thing in them that is not JSON data, if any. Later stages may then walk them without care. */

/** Deepest nesting of a free-form value. */
export const MAX_DEPTH = 256;

/** Most values inside one free-form value. Bounds the walk through data that refers to the same parts many times. */
const MAX_VALUES = 5_000_000;

/** The path of the first part of a free-form value that is not JSON data, and the reason. */
export type JsonFault = {
  readonly path: readonly string[];
  readonly expected: string;
  readonly input: unknown;
};

/** Returns the first fault in a value, or null. `undefined` inside an object counts as absent. */
export function jsonFault(value: unknown): JsonFault | null {
  const budget = { left: MAX_VALUES };
  return walk(value, 0, budget);
}

/** Returns true if a value is a plain object, as in JSON, rather than a Map, a Date, an array or the like. */
export function isJsonObject(value: unknown): value is Record<string, unknown> {
  return Object.prototype.toString.call(value) === '[object Object]';
}

function walk(value: unknown, depth: number, budget: { left: number }): JsonFault | null {
  budget.left -= 1;
  if (budget.left < 0) return { path: [], expected: `at most ${MAX_VALUES} values`, input: value };
  if (typeof value === 'string' || typeof value === 'boolean' || value === null) return null;
  if (typeof value === 'number')
    return Number.isFinite(value) ? null : { path: [], expected: 'a finite number', input: value };
  if (typeof value !== 'object') return { path: [], expected: 'JSON data', input: value };
  if (depth === MAX_DEPTH)
    return { path: [], expected: `at most ${MAX_DEPTH} levels and no object inside itself`, input: value };
  if (Array.isArray(value)) return walkList(value, depth, budget);
  if (!isJsonObject(value)) return { path: [], expected: 'JSON data', input: value };
  for (const key of Object.keys(value)) {
    const field = value[key];
    const inner = field === undefined ? null : walk(field, depth + 1, budget);
    if (inner) return { ...inner, path: [key, ...inner.path] };
  }
  return null;
}

function walkList(list: readonly unknown[], depth: number, budget: { left: number }): JsonFault | null {
  for (let i = 0; i < list.length; i++) {
    const inner = walk(list[i], depth + 1, budget);
    if (inner) return { ...inner, path: [String(i), ...inner.path] };
  }
  return null;
}
