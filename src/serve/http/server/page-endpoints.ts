/** Requests of browsers -> the chat page and its files, which need no token: the page asks for one. */
import { createHash } from 'node:crypto';
import fs from 'node:fs/promises';
import path from 'node:path';
import { packageFile } from '../../../common/index.ts';
import { OnpolicyError } from '../../../errors.ts';
import type { EndpointHandler, RequestContext } from './context.ts';
import { type ServedResponse, text } from './wire.ts';

/** Folder of the page's files. When a bundler moves this code, they stay in the package. */
const FOLDER = packageFile('dist/serve/page');

const TYPES: Readonly<Record<string, string>> = {
  '.css': 'text/css; charset=utf-8',
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.txt': 'text/plain; charset=utf-8',
};

/** Nothing but the page's own files runs and is loaded, and no script may turn a text into elements. Images are those of the user. */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join('; ');

const HEADERS = {
  'content-security-policy': POLICY,
  'x-frame-options': 'DENY', // for browsers that do not know frame-ancestors
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'cache-control': 'no-cache', // it is kept, and asked for with its tag
};

type PageFile = { readonly type: string; readonly body: string; readonly etag: string };

let files: Promise<ReadonlyMap<string, PageFile>> | undefined;

/** `GET /`: the page for browsers. Clients of Ollama look here whether it runs. */
export const showPage: EndpointHandler = async (context) => {
  const { settings, request } = context;
  if (!settings.page) return text('Ollama is running');
  const isBrowser = request.headers.get('accept')?.includes('text/html') ?? false;
  const response = isBrowser ? await pageFile('index.html', context) : text('Ollama is running');
  return { ...response, headers: { ...response.headers, vary: 'Accept' } };
};

/** `GET /page/{id}`: a file of the page. */
export const showPageFile: EndpointHandler = async (context) => await pageFile(context.id, context);

async function pageFile(name: string, { settings, request }: RequestContext): Promise<ServedResponse> {
  files ??= readFiles();
  const file = settings.page ? (await files).get(name) : undefined;
  if (!file) throw new OnpolicyError('NOT_FOUND', 'there is no such file of the page');
  const headers = { ...HEADERS, etag: file.etag };
  const known = request.headers.get('if-none-match')?.split(/\s*,\s*/) ?? [];
  if (known.includes(file.etag) || known.includes(`W/${file.etag}`))
    return { status: 304, headers, body: '' };
  return { status: 200, headers: { ...headers, 'content-type': file.type }, body: file.body };
}

/** Reads the files once. A request can only name one of these. */
async function readFiles(): Promise<ReadonlyMap<string, PageFile>> {
  const names = await fs.readdir(FOLDER).catch(() => []);
  const read = names.map(async (name) => {
    const body = await fs.readFile(path.join(FOLDER, name), 'utf8');
    const etag = `"${createHash('sha256').update(body).digest('base64url')}"`;
    return [name, { type: TYPES[path.extname(name)]!, body, etag }] as const;
  });
  return new Map(await Promise.all(read));
}
