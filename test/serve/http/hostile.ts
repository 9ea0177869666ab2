/** A seed -> hostile requests as bytes of a socket, and a server's responses to them. */
import net from 'node:net';
import { randomNumbers } from '../../fakes/random-numbers.ts';

/** Bytes to write, and what comes after them. */
type Hostile = {
  readonly kind: string;
  readonly bytes: Buffer;
  /** `end`: nothing more comes. `wait`: the rest of the body never does. `cut`: the connection is cut at once. */
  readonly after: 'end' | 'wait' | 'cut';
};

const FIELDS = [
  ...['messages', 'model', 'temperature', 'top_p', 'top_k', 'min_p', 'seed', 'n', 'stop', 'stream', 'tools'],
  ...['stream_options', 'logit_bias', 'max_tokens', 'response_format', 'structured_outputs', 'documents'],
  ...['chat_template', 'chat_template_kwargs', 'priority', 'request_id', 'bad_words', 'allowed_token_ids'],
  ...['logits_processors', 'inference_xargs', 'kv_transfer_params', 'trajectory_groups', 'model_id', 'steps'],
  ...['input', 'prompt', 'options', 'format', 'images', 'keep_alive', 'think', 'suffix', 'reasoning'],
  ...['base_model', 'name', 'split', '__proto__', 'constructor', 'toString', '', 'x'.repeat(5000), '\u0000'],
];
const LITERALS = [
  ...['1e999', '-1e999', '1e-400', '-0', '9223372036854775808', '99999999999999999999999999', '0.1', 'null'],
  ...[
    'true',
    '""',
    '"\\ud800"',
    '"\\u0000"',
    '{}',
    '[]',
    '[[]]',
    '{"__proto__":{"a":1}}',
    '{"constructor":1}',
  ],
  ...[
    '{"":{"":{}}}',
    '"{{ 1 }}"',
    '"hf:x/y"',
    '"/etc/passwd"',
    '"../../x"',
    '[null]',
    '[{}]',
    '["a",1,null]',
  ],
];
const PATHS = [
  ...['/api/chat', '/api/generate', '/api/embed', '/api/show', '/api/pull', '/api/tags', '/v1/messages'],
  ...['/v1/responses', '/v1/responses/compact', '/v1/responses/x?stream=true&starting_after=-1'],
  ...['/v1/chat/completions', '/v1/chat/completions', '/v1/chat/completions/', '/v1/preview/training-jobs'],
  ...[
    '/v1/preview/models',
    '/v1/preview/models/x/log',
    '/v1/preview/models/x/checkpoints',
    '/v1/models/%2e%2e%2f',
  ],
  ...[
    '/v1/preview/models?limit=1e9&order=__proto__&after=',
    '/v1/preview/training-jobs/%00/events',
    '//',
    '/..',
    '*',
  ],
  ...[
    '/v1/models/%',
    '/v1/preview/models/%zz/log',
    `/${'a'.repeat(8000)}`,
    'http://x/v1/models',
    '/metrics',
    '/health',
  ],
];
const METHODS = [
  'POST',
  'POST',
  'POST',
  'GET',
  'DELETE',
  'PUT',
  'HEAD',
  'OPTIONS',
  'TRACE',
  'CONNECT',
  'BREW',
  '',
];
const HEADERS = [
  'Content-Length: 5',
  'Content-Length: -1',
  'Content-Length: 99999999999999999999',
  'Content-Length: 1e3',
  'Transfer-Encoding: chunked',
  'Transfer-Encoding: gzip, chunked',
  'Expect: 100-continue',
  'Expect: everything',
  'Upgrade: websocket\r\nConnection: Upgrade',
  'Content-Encoding: br',
  'Content-Type: application/json; charset=utf-16',
  'Content-Type: multipart/form-data',
  'Authorization: Bearer ',
  `Authorization: Bearer ${'x'.repeat(10_000)}`,
  `X-Request-Id: ${'y'.repeat(5000)}`,
  'X-Request-Id: \u0001\u0002',
  'X-Request-Id: é%0d%0aSet-Cookie: a=b',
  'Origin: null',
  'Origin: https://elsewhere.example',
  'Host: elsewhere.example',
  'Host: [::1',
  'Host: a@b',
  'X Y: z',
  ': z',
  `X-Long: ${'z'.repeat(20_000)}`,
  ...Array.from({ length: 3 }, (_, i) =>
    Array.from({ length: 3000 }, (__, j) => `X-${i}-${j}: 1`).join('\r\n'),
  ),
];

/** Makes one after another. */
function hostileRequests(seed: number): () => Hostile {
  const random = randomNumbers(seed);
  const pick = <T>(list: readonly T[]): T => list[Math.floor(random() * list.length)]!;
  const noise = (length: number): Buffer =>
    Buffer.from(Array.from({ length }, () => Math.floor(random() * 256)));

  const literal = (depth: number): string => {
    const roll = random();
    if (depth === 0 || roll < 0.6) return pick(LITERALS);
    const items = Array.from({ length: Math.floor(random() * 4) }, () => literal(depth - 1));
    if (roll < 0.8) return `[${items.join(',')}]`;
    return `{${items.map((item) => `${JSON.stringify(pick(FIELDS))}:${item}`).join(',')}}`;
  };
  const body = (): Buffer => {
    const roll = random();
    if (roll < 0.05) return noise(Math.floor(random() * 300));
    if (roll < 0.1) {
      const depth = Math.floor(random() * 30_000);
      const [open, close] = pick([
        ['[', ']'],
        ['{"a":', '}'],
      ] as const);
      return Buffer.from(`{"messages":${open.repeat(depth)}1${close.repeat(depth)}}`);
    }
    const good = '"messages":[{"role":"user","content":"Hi"}]';
    const fields = Array.from(
      { length: Math.floor(random() * 5) },
      () => `${JSON.stringify(pick(FIELDS))}:${literal(3)}`,
    );
    const text = `{${[...(random() < 0.7 ? [good] : []), ...fields].join(',')}}`;
    const bytes = Buffer.from(roll < 0.2 ? text.slice(0, Math.floor(random() * text.length)) : text);
    if (roll > 0.9 && bytes.length > 0)
      bytes[Math.floor(random() * bytes.length)] = Math.floor(random() * 256);
    return bytes;
  };

  return () => {
    const roll = random();
    if (roll < 0.05) return { kind: 'noise', bytes: noise(1 + Math.floor(random() * 500)), after: 'end' };
    const content = body();
    const isWhole = roll > 0.3;
    const method = isWhole ? 'POST' : pick(METHODS);
    const headers = [
      'Host: localhost',
      'Content-Type: application/json',
      ...(isWhole || random() < 0.5 ? [`Content-Length: ${content.length}`] : []),
      ...(isWhole ? [] : Array.from({ length: 1 + Math.floor(random() * 2) }, () => pick(HEADERS))),
      'Connection: close',
    ];
    const path = isWhole ? PATHS[Math.floor(random() * 7)]! : pick(PATHS);
    const head = Buffer.from(`${method} ${path} HTTP/1.1\r\n${headers.join('\r\n')}\r\n\r\n`, 'latin1');
    const bytes = Buffer.concat([head, content]);
    if (roll > 0.97)
      return { kind: 'cut', bytes: bytes.subarray(0, Math.floor(random() * bytes.length)), after: 'cut' };
    if (roll > 0.94) return { kind: 'slow', bytes: bytes.subarray(0, bytes.length - 1), after: 'wait' };
    if (roll > 0.9)
      return {
        kind: 'truncated',
        bytes: bytes.subarray(0, Math.floor(random() * bytes.length)),
        after: 'end',
      };
    return { kind: isWhole ? 'body' : 'head', bytes, after: isWhole ? 'wait' : 'end' };
  };
}

/** The outcome of an attack. */
export type Outcome = {
  /** Status -> how often; 0: the connection ended without one. */
  readonly statuses: ReadonlyMap<number, number>;
  /** Requests that were answered with a 500, a stack trace or nothing at all, with their answers. */
  readonly failures: readonly string[];
};

/** Silence after which a connection counts as hanging. A busy machine may be silent for a shorter time. */
const SILENCE_MS = 30_000;

/** Sends `count` hostile requests to a port of this machine, many at a time. */
export async function attack(port: number, seed: number, count: number): Promise<Outcome> {
  const next = hostileRequests(seed);
  const statuses = new Map<number, number>();
  const failures: string[] = [];
  let sent = 0;
  const worker = async (): Promise<void> => {
    while (sent < count) {
      const request = next();
      const name = `request ${sent++} (${request.kind})`;
      const { status, text } = await send(port, request);
      statuses.set(status, (statuses.get(status) ?? 0) + 1);
      const hasTrace = /\bat [\w.]+ \(|node_modules|\.ts:\d/.test(text);
      if (status === -1 || status >= 500 || hasTrace)
        failures.push(`${name}: ${request.bytes.toString('latin1').slice(0, 500)}\n${text.slice(0, 500)}`);
    }
  };
  await Promise.all(Array.from({ length: 32 }, worker));
  return { statuses, failures };
}

/** The status of the first response, 0 when the connection ended without one, -1 when nothing happened for long. */
function send(port: number, { bytes, after }: Hostile): Promise<{ status: number; text: string }> {
  return new Promise((resolve) => {
    const socket = net.connect({ port, host: '127.0.0.1', allowHalfOpen: true });
    const parts: Buffer[] = [];
    const end = (failure: number): void => {
      const text = Buffer.concat(parts).toString('latin1');
      socket.destroy();
      resolve({ status: Number(/^HTTP\/1\.1 (?!100)(\d{3})/m.exec(text)?.[1] ?? failure), text });
    };
    socket.setTimeout(SILENCE_MS, () => end(-1));
    socket.on('data', (part) => parts.push(part));
    socket.on('end', () => end(0));
    socket.on('error', () => end(0));
    socket.write(bytes, () => {
      if (after === 'end') socket.end();
      if (after === 'cut') end(0);
    });
  });
}
