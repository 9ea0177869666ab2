/** Docs and defaults made from the schemas are up to date; every field has its tests. */
import fs from 'node:fs';
import { describe, expect, it } from 'vitest';
import { checkedSchemas } from '../../src/protocol/generated/checked-schemas.ts';
import { fills } from '../../src/protocol/generated/fills.ts';
import { argumentDefinitions, definitions, fieldGroups, filled } from '../../src/protocol/schemas/index.ts';
import type { Schema } from '../../src/protocol/schemas/schema.ts';
import { endpoints } from '../../src/serve/http/server/routes.ts';
import { valid } from './request.ts';

const root = new URL('../../', import.meta.url);
const read = (file: string): string => fs.readFileSync(new URL(file, root), 'utf8');

/** The scripts are plain JavaScript: only what is used here is typed. */
type Scripts = {
  buildPages(): Promise<Readonly<Record<string, string>>>;
  withEndpoints(page: string, of: typeof endpoints): string;
};
const script = async (name: string): Promise<Scripts> => import(new URL(`scripts/${name}`, root).href);

const all = { ...definitions, ...argumentDefinitions };
const fields = definitions['ChatCompletionRequest']!.properties!;
const proofs = JSON.parse(read('test/request-fields.json')) as Record<
  string,
  { readonly checks: readonly string[]; readonly effect: readonly string[] }
>;

describe('made from the schemas', () => {
  it.each(['request-fields.md', 'runtime-options.md'])('are the docs: %s', async (name) => {
    const { buildPages } = await script('docs/build-request-docs.mjs');
    expect(read(`docs/${name}`), 'run "npm run docs"').toBe((await buildPages())[name]);
  });

  it('are the docs of endpoints: serving.md', async () => {
    const { withEndpoints } = await script('docs/build-request-docs.mjs');
    const page = read('docs/serving.md');
    expect(page).toContain('| `POST /v1/chat/completions` | `complete` |');
    expect(page, 'run "npm run docs"').toBe(withEndpoints(page, endpoints));
  });

  it('say which fields have no effect', () => {
    const silent = Object.keys(fields).filter((name) =>
      /^(No|Accepted .* no) effect/.test(fields[name]!.description!),
    );
    expect(Object.keys(fieldGroups['Accepted without effect']!).toSorted()).toEqual(silent.toSorted());
  });

  it('are the schemas that inputs are checked against, without what only docs need', () => {
    expect(Object.keys(checkedSchemas)).toEqual(Object.keys(all));
    for (const text of Object.values(checkedSchemas)) expect(text).not.toContain('"description":"');
  });
});

describe('the schemas', () => {
  it('describe every field', () => {
    const silent: string[] = [];
    const visit = (schema: Schema, path: string): void => {
      for (const [name, field] of Object.entries(schema.properties ?? {})) {
        if (!field.description && !isTag(schema, name)) silent.push(`${path}.${name}`);
        visit(field, `${path}.${name}`);
      }
      if (schema.items) visit(schema.items, `${path}[]`);
    };
    for (const [name, schema] of Object.entries(all)) visit(schema, name);
    expect(silent).toEqual([]);
  });

  it('only name definitions that exist', () => {
    const names = JSON.stringify(all).matchAll(/"\$ref":"#\/\$defs\/(\w+)"/g);
    for (const [, name] of names) expect(all).toHaveProperty(name!);
  });

  it.each(Object.entries(fields).filter(([, { default: value }]) => value !== undefined))(
    'have the default of %s that validation fills in',
    (field, schema) => {
      expect((valid({}) as Record<string, unknown>)[field]).toEqual(schema.default);
    },
  );
});

describe('the defaults of', () => {
  it.each(
    [...new Set([...filled, ...Object.keys(argumentDefinitions)])].filter((name) => all[name]!.properties),
  )('%s are those of its schema, null where it has none', (name) => {
    const fill = (fills as Readonly<Record<string, (given: object) => Readonly<Record<string, unknown>>>>)[
      name
    ]!;
    const { properties, required = [] } = all[name]!;
    const given = Object.fromEntries(required.map((field) => [field, []]));
    for (const [field, value] of Object.entries(fill(given)))
      expect([field, value]).toEqual([field, given[field] ?? properties![field]!.default ?? null]);
  });
});

describe('the tests of request-fields.json', () => {
  it('are named for every field', () => {
    expect(Object.keys(proofs).sort()).toEqual(Object.keys(fields).sort());
  });

  it.each(Object.entries(proofs))('exist for %s', (_, { checks, effect }) => {
    expect(checks.length).toBeGreaterThan(0);
    for (const test of [...checks, ...effect]) {
      const [file, title] = test.split(' > ') as [string, string];
      expect(read(file), file).toContain(title);
    }
  });

  it.each(Object.entries(proofs))('show the effect of %s on a model', (field, { effect }) => {
    expect(effect.length).toBeGreaterThan(0);
    for (const test of effect) {
      const [file] = test.split(' > ') as [string];
      expect(file).toMatch(/\.native(\.slow)?\.test\.ts$|^test\/e2e\//);
      expect(read(file), file).toContain(field);
    }
  });
});

/** The field that tells the members of a union apart is described where it is defined: in the members. */
function isTag(schema: Schema, name: string): boolean {
  return schema.tsType !== undefined && fieldsOf(schema).every((field) => field === name);
}

function fieldsOf(schema: Schema): string[] {
  return Object.keys(schema.properties ?? {});
}
