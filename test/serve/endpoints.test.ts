/** Endpoints are named in one table of methods, which has two files, and in the list of endpoints of other APIs. */
import fs from 'node:fs';
import path from 'node:path';
import ts from 'typescript';
import { expect, it } from 'vitest';
import { BATCH_URLS } from '../../src/protocol/schemas/batch.ts';
import { methods } from '../../src/protocol/service/index.ts';
import { endpoints } from '../../src/serve/http/server/routes.ts';

const SRC = path.resolve(import.meta.dirname, '../../src');
const TABLES = [
  'protocol/service/methods.ts',
  'protocol/service/training-methods.ts',
  'serve/http/server/routes.ts',
];
/** Schemas are the docs of the wire, and tell which paths a row of a batch may have. */
const DOCS = 'protocol/schemas/';
/** Has the type of the answer to each url of a row; TypeScript finds a url that it lacks. */
const ROW_TYPES = 'protocol/batch-types.ts';

/** Literals of a file that have a path of an endpoint in them. */
function pathsIn(file: string): string[] {
  const source = ts.createSourceFile(
    file,
    fs.readFileSync(path.join(SRC, file), 'utf8'),
    ts.ScriptTarget.ES2022,
  );
  const found: string[] = [];
  const visit = (node: ts.Node): void => {
    if (ts.isStringLiteralLike(node) || ts.isTemplateHead(node) || ts.isTemplateMiddleOrTemplateTail(node))
      if (node.text.includes('/v1/')) found.push(`${file}: ${node.text}`);
    ts.forEachChild(node, visit);
  };
  visit(source);
  return found;
}

it('no file but the tables has the path of an endpoint', () => {
  const files = fs
    .readdirSync(SRC, { recursive: true, encoding: 'utf8' })
    .map((file) => file.replaceAll(path.sep, '/'))
    .filter((file) => file.endsWith('.ts') && !file.includes('/generated/'));
  expect(TABLES.flatMap(pathsIn).length).toBeGreaterThan(20);
  const others = files.filter(
    (file) => file !== ROW_TYPES && !TABLES.includes(file) && !file.startsWith(DOCS),
  );
  expect(others.flatMap(pathsIn)).toEqual([]);
});

it('rows of batches have the paths of methods which are sent there', () => {
  const posts = methods.flatMap(([, { http }]) => (http?.[0] === 'POST' ? [http[1]] : []));
  const answering = BATCH_URLS.map((url) => posts.filter((path) => path === url));
  expect(answering).toEqual(BATCH_URLS.map((url) => [url]));
});

it('each endpoint is there once, and the docs say what it is for', () => {
  const names = endpoints.map((endpoint) => `${endpoint.method} ${endpoint.path}`);
  expect(names.filter((name, i) => names.indexOf(name) !== i)).toEqual([]);
  expect(endpoints.filter(({ docs }) => docs === '').map((endpoint) => endpoint.path)).toEqual([]);
});
