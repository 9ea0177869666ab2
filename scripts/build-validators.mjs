// src/protocol/schemas -> src/protocol/generated/validators.ts (checks, compiled ahead by ajv, no dependency at run time)
//                      -> src/protocol/generated/request-types.ts (the TypeScript types of requests)
//                      -> src/protocol/generated/argument-types.ts (those of arguments and settings)
//                      -> src/protocol/generated/fills.ts (their defaults)
import fs from 'node:fs';
import { createRequire } from 'node:module';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { _, Ajv } from 'ajv';
import ts from 'typescript';
import { toFills } from './schema-fills.mjs';
import { toArgumentTypes, toTypes } from './schema-types.mjs';

const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '..');
const protocol = path.join(root, 'src', 'protocol');
const require = createRequire(import.meta.url);
/** Our own keywords, for docs, types and error messages. They check nothing. */
const ANNOTATIONS = ['bounds', 'expected', 'keepsNull', 'secret', 'tsType'];

/**
 * Three patterns of ajv's code that a hostile body turns into gigabytes: each faulty item copies all errors so far, repeats
 * a key of any length in its path, and adds an error. Appending errors and bounding paths keeps the work linear; so many errors
 * end the validation. A function that adds an error takes a seventh of the code away.
 */
const HELPERS = `/** Most errors that a validation collects. */
export const MOST_ERRORS = 2 ** 20;

function append(all, more) {
  if (all === null) return more;
  for (const error of more) add(all, error);
  return all;
}

/** Throws the errors if there are too many. */
function add(errors, error) {
  if (errors.push(error) >= MOST_ERRORS) throw errors;
}

function fail(errors, error) {
  if (errors === null) return [error];
  add(errors, error);
  return errors;
}

function step(key) {
  return key.slice(0, 200).replaceAll('~', '~0').replaceAll('/', '~1');
}
`;

/** Replaces the three patterns. Fails if a version of ajv writes them differently. */
function withoutHabits(code) {
  const linear = code
    .replaceAll(
      /vErrors = vErrors === null \? (\w+\.errors) : vErrors\.concat\(\1\)/g,
      'vErrors = append(vErrors, $1)',
    )
    .replaceAll(
      /const (err\d+) = (\{.*\});\nif\(vErrors === null\)\{\nvErrors = \[\1\];\n\}\nelse \{\nvErrors\.push\(\1\);\n\}/g,
      'vErrors = fail(vErrors, $2);',
    )
    .replaceAll(/(key\d+)\.replace\(\/~\/g, "~0"\)\.replace\(\/\\\/\/g, "~1"\)/g, 'step($1)');
  if (/\.concat\(|\.replace\(|vErrors\.push\(/.test(linear))
    throw new Error('ajv writes its code in another way: adapt withoutHabits');
  return HELPERS + linear;
}

/** Imports the schemas, which are TypeScript: Node 20 cannot, so they are stripped of their types first. */
export async function loadSchemas() {
  const folder = path.join(protocol, 'schemas');
  const stripped = fs.mkdtempSync(path.join(os.tmpdir(), 'onpolicy-schemas-'));
  try {
    for (const file of fs.readdirSync(folder)) {
      const source = fs
        .readFileSync(path.join(folder, file), 'utf8')
        .replaceAll(/(from '\.\/[\w-]+)\.ts'/g, "$1.mjs'");
      const { outputText } = ts.transpileModule(source, {
        compilerOptions: {
          module: ts.ModuleKind.ESNext,
          target: ts.ScriptTarget.ES2022,
          verbatimModuleSyntax: true,
        },
      });
      fs.writeFileSync(path.join(stripped, file.replace(/\.ts$/, '.mjs')), outputText);
    }
    return await import(pathToFileURL(path.join(stripped, 'index.mjs')).href);
  } finally {
    fs.rmSync(stripped, { recursive: true, force: true });
  }
}

/** A schema without the keywords for docs and types. */
function bare(schema) {
  if (Array.isArray(schema)) return schema.map(bare);
  if (typeof schema !== 'object' || schema === null) return schema;
  return Object.fromEntries(
    Object.entries(schema).flatMap(([key, value]) => {
      if (key === 'properties')
        return [[key, Object.fromEntries(Object.entries(value).map(([name, field]) => [name, bare(field)]))]];
      if (['description', 'default', 'bounds', 'tsType'].includes(key)) return [];
      return [[key, bare(value)]];
    }),
  );
}

/** Checks what JSON does not have: a function, or an object of a built-in class, of this realm or of another. */
const kindKeyword = {
  keyword: 'kind',
  schemaType: 'string',
  code: (cxt) =>
    cxt.fail(
      cxt.schema === 'function'
        ? _`typeof ${cxt.data} !== 'function'`
        : _`Object.prototype.toString.call(${cxt.data}) !== ${`[object ${cxt.schema}]`}`,
    ),
};

/** One TypeScript module with a validator per name. */
export function toValidators({ definitions, argumentDefinitions, validated }) {
  const ajv = new Ajv({
    allErrors: true,
    verbose: true, // errors carry the value and its schema: faults are worded from them
    messages: false,
    unicode: false, // lengths are only compared with 1, so bytes and characters are the same to them
    logger: false, // it calls the option above deprecated
    strictTypes: false,
    strictRequired: false,
    code: { source: true, esm: true, lines: true },
  });
  for (const name of ANNOTATIONS) ajv.addKeyword(name);
  ajv.addKeyword(kindKeyword);
  const $defs = Object.fromEntries(
    Object.entries({ ...definitions, ...argumentDefinitions }).map(([name, schema]) => [name, bare(schema)]),
  );
  ajv.addSchema({ $id: 'onpolicy', $defs });
  const standalone = require('ajv/dist/standalone').default;
  const code = standalone(
    ajv,
    Object.fromEntries(
      [...validated, ...Object.keys(argumentDefinitions)].map((name) => [name, `onpolicy#/$defs/${name}`]),
    ),
  );
  if (/\brequire\(|^import /m.test(code)) throw new Error('the compiled validators must not need a package');
  return `// @ts-nocheck\n/** Generated by scripts/build-validators.mjs from ../schemas: do not edit. */\n${withoutHabits(code)}\n`;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const schemas = await loadSchemas();
  const generated = path.join(protocol, 'generated');
  fs.mkdirSync(generated, { recursive: true });
  fs.writeFileSync(path.join(generated, 'validators.ts'), toValidators(schemas));
  fs.writeFileSync(path.join(generated, 'request-types.ts'), toTypes(schemas));
  fs.writeFileSync(path.join(generated, 'argument-types.ts'), toArgumentTypes(schemas));
  fs.writeFileSync(path.join(generated, 'fills.ts'), toFills(schemas));
}
