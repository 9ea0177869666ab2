/** A request of many parts and a seed -> the same request with one or two of its values replaced by extremes. */
import { randomNumbers } from '../fakes/random-numbers.ts';
import { EXTREMES, type Extreme } from './values.ts';

/** One input. */
export type Draw = {
  readonly input: unknown;
  /** The replaced paths and their new values. */
  readonly changes: readonly { readonly path: readonly string[]; readonly extreme: Extreme }[];
  /** True if JSON can represent the input. */
  readonly isJson: boolean;
};

/** Requests to start from, and fields that may be added to each. */
export type Form = { readonly bases: readonly object[]; readonly fields: readonly string[] };

/** How often a value of megabytes is kept when it was drawn. */
const LARGE_SHARE = 0.003;

/** All places of a value: its fields, their fields, and so on. */
function pathsOf(value: unknown, path: readonly string[] = []): (readonly string[])[] {
  if (typeof value !== 'object' || value === null) return [path];
  const inner = Object.entries(value).flatMap(([key, field]) => pathsOf(field, [...path, key]));
  return path.length === 0 ? inner : [path, ...inner];
}

/** Replaces the value at a path, as far as the path still leads somewhere. */
function replaceAt(root: unknown, path: readonly string[], value: unknown): void {
  let at = root as Record<string, unknown>;
  for (const key of path.slice(0, -1)) {
    const next = at[key];
    if (typeof next !== 'object' || next === null) return;
    at = next as Record<string, unknown>;
  }
  at[path.at(-1)!] = value;
}

/** The places of a form that can be replaced: of each base all of its own, and its further fields. */
function placesOf({ bases, fields }: Form): { base: object; path: readonly string[] }[] {
  const own = bases.flatMap((base) => pathsOf(base).map((path) => ({ base, path })));
  const added = fields.map((field) => ({ base: bases[0]!, path: [field] }));
  const unknown = bases.map((base) => ({ base, path: ['unknown_field'] }));
  return [...own, ...added, ...unknown];
}

function startsWith(path: readonly string[], start: readonly string[]): boolean {
  return start.every((key, i) => path[i] === key);
}

function change(base: object, drawn: Draw['changes']): Draw {
  const input = JSON.parse(JSON.stringify(base)) as object;
  const [first, second] = drawn;
  const isInside = first && second?.path.length !== undefined && startsWith(second.path, first.path);
  const changes = isInside ? [first] : drawn; // what was replaced has no places of its own
  for (const { path, extreme } of changes) replaceAt(input, path, extreme.make());
  return { input, changes, isJson: changes.every(({ extreme }) => extreme.isJson) };
}

/** How many places of a form can be replaced. */
export function countPlaces(form: Form): number {
  return placesOf(form).length;
}

/** One or two places at a time, endlessly. */
export function* random(form: Form, seed: number): Generator<Draw> {
  const next = randomNumbers(seed);
  const pick = <T>(list: readonly T[]): T => list[Math.floor(next() * list.length)]!;
  const places = placesOf(form);
  const byBase = new Map(form.bases.map((base) => [base, places.filter((place) => place.base === base)]));
  const extreme = (): Extreme => {
    for (;;) {
      const drawn = pick(EXTREMES);
      if (!drawn.isLarge || next() < LARGE_SHARE) return drawn;
    }
  };
  for (;;) {
    const { base, path } = pick(places);
    const changes = [{ path, extreme: extreme() }];
    if (next() < 0.7) {
      const beside = next() < 0.5 ? [pick(form.fields)] : pick(byBase.get(base)!).path;
      changes.push({ path: beside, extreme: extreme() });
    }
    yield change(base, changes);
  }
}

/** A draw in words. */
export function inWords({ changes }: Draw): string {
  return changes.map(({ path, extreme }) => `${path.join('.')} = ${extreme.name}`).join(', ');
}
