/** Schemas of installed packages and of this library: random documents get the verdict that ajv gives, in any order of keys. */
import fs from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { Ajv } from 'ajv';
import { Ajv2019 } from 'ajv/dist/2019.js';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { describe, expect, it } from 'vitest';
import { compileConstraint } from '../../src/structured/index.ts';
import { smallVocabulary } from './vocabularies.ts';

type Json = null | boolean | number | string | Json[] | { [key: string]: Json };
type Schema = { readonly [key: string]: Json };

const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '../..');
const DOCUMENTS = 40;
const MOST_BYTES = 200_000;

/** Files with a JSON Schema below a folder. */
function schemaFiles(folder: string): string[] {
  return fs.readdirSync(folder, { recursive: true, withFileTypes: true }).flatMap((entry) => {
    if (!entry.isFile() || !entry.name.endsWith('.json') || /^(package|tsconfig)/.test(entry.name)) return [];
    const file = path.join(entry.parentPath, entry.name);
    if (fs.statSync(file).size > MOST_BYTES) return [];
    return /"\$schema":\s*"https?:\/\/json-schema\.org/.test(fs.readFileSync(file, 'utf8')) ? [file] : [];
  });
}

/** Whole numbers below a bound, from a seed. */
function randomSource(seed: number) {
  let state = seed;
  return (bound: number) => {
    state = (Math.imul(state, 1103515245) + 12345) & 0x7fffffff;
    return (state >>> 8) % bound;
  };
}

/** Strings are URIs: this library holds documents to known formats, ajv alone does not. */
const ANY: readonly Json[] = [null, true, 0, -3, 2.5, 'urn:a', 'http://a.b/c#', [], [1], {}, { 'urn:a': 1 }];

/** A document that a schema may or may not take. */
function draw(random: (bound: number) => number, schema: Json | undefined, whole: Schema, depth = 0): Json {
  const any = () => ANY[random(ANY.length)]!;
  if (typeof schema !== 'object' || schema === null || Array.isArray(schema) || random(25) === 0 || depth > 8)
    return any();
  const pick = (list: Json[]) => list[random(list.length)];
  if (typeof schema['$ref'] === 'string') {
    const names = schema['$ref'].split('/').slice(1);
    const target = names.reduce<Json | undefined>(
      (at, name) =>
        (at as Schema | undefined)?.[decodeURIComponent(name).replaceAll('~1', '/').replaceAll('~0', '~')],
      whole,
    );
    return draw(random, target, whole, depth + 1);
  }
  if ('const' in schema) return schema['const']!;
  if (Array.isArray(schema['enum'])) return pick(schema['enum'])!;
  for (const key of ['anyOf', 'oneOf', 'allOf'])
    if (Array.isArray(schema[key])) return draw(random, pick(schema[key]), whole, depth + 1);
  const types = [schema['type'] ?? (schema['properties'] ? 'object' : 'any')].flat();
  switch (types[random(types.length)]) {
    case 'object': {
      const properties = (schema['properties'] ?? {}) as Schema;
      const required = (schema['required'] ?? []) as string[];
      const keys = Object.keys(properties).filter((key) =>
        required.includes(key) ? random(20) > 0 : random(Math.max(2, depth)) === 0,
      );
      if (random(6) === 0) keys.push('urn:other');
      if (random(2) === 0) keys.reverse();
      return Object.fromEntries(
        keys.map((key) => [
          key,
          draw(random, properties[key] ?? schema['additionalProperties'], whole, depth + 1),
        ]),
      );
    }
    case 'array':
      return Array.from({ length: random(3) }, () => draw(random, schema['items'], whole, depth + 1));
    case 'string':
      return pick(schema['format'] ? ['urn:a', 'http://a.b/c#'] : ['', 'a', 'x y', '#/a', 'é"\\'])!;
    case 'integer':
      return random(12) - 2;
    case 'number':
      return random(40) / 4 - 2;
    case 'boolean':
      return random(2) === 0;
    default:
      return any();
  }
}

const options = { strict: false, validateFormats: false, validateSchema: false, logger: false } as const;
const require = createRequire(import.meta.url);

/** Returns ajv's validator, or undefined for a schema that ajv refuses. */
function validator(schema: Schema) {
  const draft = String(schema['$schema']);
  const Class = draft.includes('2020') ? Ajv2020 : draft.includes('2019') ? Ajv2019 : Ajv;
  // Some are schemas of schemas, which ajv knows by their identifier.
  const { $id: _id, id: _old, ...rest } = schema;
  try {
    return new Class({ ...options, meta: false }).compile(rest);
  } catch {
    return undefined;
  }
}

const folders = [
  path.join(path.dirname(require.resolve('ajv/package.json')), 'lib'),
  ...['knip', 'typedoc'].map((name) => path.join(root, 'node_modules', name)),
  path.join(root, 'src/protocol/schemas'),
];

describe('schemas of installed packages', () => {
  it('get the verdicts of ajv', async () => {
    const vocabulary = smallVocabulary();
    const tally = { schemas: 0, valid: 0, invalid: 0 };
    const wrong: string[] = [];
    for (const file of folders.filter((folder) => fs.existsSync(folder)).flatMap(schemaFiles)) {
      const schema = JSON.parse(fs.readFileSync(file, 'utf8')) as Schema;
      const validate = validator(schema);
      const constraint =
        validate &&
        (await compileConstraint({ json: schema, property_order: 'any' }, vocabulary).catch(() => undefined));
      if (!validate || !constraint) continue;
      tally.schemas++;
      const random = randomSource(tally.schemas);
      for (let i = 0; i < DOCUMENTS; i++) {
        const document = draw(random, schema, schema);
        const isValid = validate(document) as boolean;
        const matcher = constraint.createMatcher();
        const text = JSON.stringify(document);
        const isTaken = [...Buffer.from(text)].every((byte) => matcher.accept(byte)) && matcher.isComplete();
        tally[isValid ? 'valid' : 'invalid']++;
        if (isTaken !== isValid)
          wrong.push(`${path.relative(root, file)}: ${isValid ? 'valid' : 'invalid'}: ${text.slice(0, 300)}`);
      }
    }
    process.stderr.write(`${JSON.stringify(tally)}\n`);
    expect(wrong).toEqual([]);
    expect(tally.schemas).toBeGreaterThan(10);
    expect(Math.min(tally.valid, tally.invalid)).toBeGreaterThan(100);
  }, 60_000);
});
