/** The engine's error about a specification -> an error that names the place by the caller's path. */
import { parseJson } from '../common/index.ts';
import { type ErrorDetail, fromNative, OnpolicyError } from '../errors.ts';
import type { StructuredOutputs } from './types.ts';

/** @internal The caller's paths of a specification. */
export type CallerPaths = {
  /** Returns the path of a field of the specification. */
  readonly of: (field: keyof StructuredOutputs) => string;
  /** Objects inside the specification that have other paths of the caller, and these paths. */
  readonly parts?: ReadonlyMap<unknown, string>;
};

/** @internal Paths of a specification that is the value of `structured_outputs`. */
export const OWN_PATHS: CallerPaths = { of: (field) => `structured_outputs.${field}` };

/** A place as the engine names it: JSON pointers in a document, and an offset in bytes of the text there. */
type NativeFault = { readonly places?: readonly string[]; readonly offset?: number };

/** A value of the caller: its path, and the JSON pointer from there. */
type Found = { path: string; pointer: string; value: unknown };

/** Highest number of characters of the engine's message. */
const MOST_REASON = 500;

/** Returns the error of a specification that the engine refused. `field`: the constraint's field. */
export function toSpecError(
  error: unknown,
  spec: StructuredOutputs,
  field: keyof StructuredOutputs,
  paths: CallerPaths,
): OnpolicyError {
  const plain = fromNative(error);
  if (plain.code !== 'INVALID_REQUEST' && plain.code !== 'UNSUPPORTED') return plain;
  const { places = [], offset } = (plain.cause ?? {}) as NativeFault;
  const pointers = places.filter((place) => place.startsWith('#'));
  const others = places.slice(pointers.length);
  const isGap = others[0] === 'whitespace_pattern';
  const found = isGap
    ? { path: paths.of('whitespace_pattern'), pointer: '', value: spec.whitespace_pattern }
    : follow(pointers, startOf(spec[field], field), { path: paths.of(field), parts: paths.parts });
  const param = found.pointer === '' ? found.path : `${found.path}#${found.pointer}`;
  const whole = plain.message.slice(places.reduce((length, place) => length + place.length + 2, 0));
  const reason = whole.length > MOST_REASON ? `${whole.slice(0, MOST_REASON)}...` : whole; // it may quote the caller's text
  const shown = isGap ? others.slice(1) : others;
  const detail: ErrorDetail = {
    loc: [...found.path.split(/[.[\]]+/).filter(Boolean), ...stepsOf(found.pointer)],
    msg: [param, ...shown, reason].join(': '),
    type: plain.code === 'UNSUPPORTED' ? 'unsupported' : 'value',
    input: found.value,
    ...(offset === undefined ? {} : { ctx: { offset: charactersBefore(found.value, offset) } }),
  };
  return new OnpolicyError(plain.code, detail.msg, { param, detail: [detail], cause: plain.cause });
}

/** @internal Replaces the JSON pointer at the start of the engine's warning by the caller's path. */
export function toCallerWarning(
  warning: string,
  spec: StructuredOutputs,
  field: keyof StructuredOutputs,
  paths: CallerPaths,
): string {
  const [pointer = ''] = /^#.*?(?=: )/.exec(warning) ?? [];
  const start = { path: paths.of(field), parts: paths.parts };
  const found = follow([pointer], startOf(spec[field], field), start);
  return `${found.path}#${found.pointer}${warning.slice(pointer.length)}`;
}

/** Parses a document that was given as text, as the engine does. */
function startOf(value: unknown, field: keyof StructuredOutputs): unknown {
  const isDocument = typeof value === 'string' && (field === 'json' || field === 'structural_tag');
  return isDocument ? parseJson(value, value) : value;
}

/** Follows pointers down a document. At a part with another path of the caller, the path starts with that one. */
function follow(
  pointers: readonly string[],
  start: unknown,
  { path, parts }: { path: string; parts: CallerPaths['parts'] },
): Found {
  const found: Found = { path, pointer: '', value: start };
  for (const step of pointers.flatMap(stepsOf)) {
    found.value = (found.value as Record<string, unknown> | null | undefined)?.[step];
    found.pointer += `/${step.replaceAll('~', '~0').replaceAll('/', '~1')}`;
    const elsewhere = parts?.get(found.value);
    if (elsewhere !== undefined) Object.assign(found, { path: elsewhere, pointer: '' });
  }
  return found;
}

function stepsOf(pointer: string): string[] {
  return pointer
    .split('/')
    .slice(1)
    .map((step) => step.replaceAll('~1', '/').replaceAll('~0', '~'));
}

/** Converts an offset in bytes to UTF-16 units, as JavaScript counts. */
function charactersBefore(text: unknown, bytes: number): number {
  return typeof text === 'string' ? Buffer.from(text).subarray(0, bytes).toString().length : bytes;
}
