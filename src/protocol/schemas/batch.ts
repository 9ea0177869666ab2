/** Options of batches, which read many requests from a file and write the answers to another one. */
import * as s from './schema.ts';

const file = (description: string): s.Schema =>
  s.string(description, { minLength: 1, expected: 'a path of a file' });
const orNone = (description: string, least: number): s.Schema =>
  s.integer(description, least, { type: ['integer', 'null'] });

/** Request paths that a row may have. Each is the path of a method in the table of `service/methods.ts`. */
export const BATCH_URLS = [
  '/v1/chat/completions',
  '/v1/completions',
  '/v1/embeddings',
  '/v1/responses',
  '/v1/messages',
  '/v1/rerank',
  '/v1/score',
  '/v1/classify',
  '/v1/decisions',
] as const;

export const batchRequestDefinitions: s.Definitions = {
  BatchRequest: s.object('Asks a server for a batch, as OpenAI does.', ['input_file_id', 'endpoint'], {
    input_file_id: s.string('The file of rows.', { minLength: 1 }),
    endpoint: s.oneOf('The `url` of rows without one.', [...BATCH_URLS]),
    completion_window: s.string('Accepted from OpenAI clients; a batch takes as long as it takes.'),
    metadata: {
      description: 'Kept with the batch.',
      type: ['object', 'null'],
      additionalProperties: { type: 'string', expected: 'a text' },
      tsType: 'Readonly<Record<string, string>> | null',
    },
  }),
};

export const batchDefinitions: s.Definitions = {
  BatchUrl: s.oneOf('Where a row would be sent to over HTTP.', [...BATCH_URLS]),
  BatchOptions: s.options('Options of `batch`.', [], {
    output: file(
      'File for the answers, one line of JSON for each. Absent: they go only to the reader of the run.',
    ),
    errors: file('File for failed rows. Default: next to the output, `out.errors.jsonl` for `out.jsonl`.'),
    resume: s.flag(
      false,
      'Whether to continue an earlier run with this output, or start one. Without it the output must not exist.',
    ),
    results: s.oneOf(
      'The rows that a reader of a resumed run gets: those of this run, or all, first those that earlier runs wrote.',
      ['new', 'all'],
      { default: 'new' },
    ),
    order: s.oneOf(
      'Lines as rows are completed, or in the order of the input. The latter holds back up to a window of answers, which a killed run computes again.',
      ['completion', 'input'],
      { default: 'completion' },
    ),
    url: {
      ...s.ref('BatchUrl'),
      description:
        'The `url` of rows without one. Default: chat completions for `messages`, text completions for `prompt`.',
    },
    model: s.string('The model of rows that name none.', { minLength: 1, expected: 'the name of a model' }),
    seed: {
      description:
        'Derives the seed of each row without one, together with its `custom_id`: the same in a repeated run.',
      type: ['integer', 'string'],
      default: 0,
    },
    response_format: s.ref(
      'ResponseFormat',
      'The form of the answers to chats without one. With a format of `schema`, rows that a reader gets have `parsed`.',
    ),
    toRequest: s.callback(
      'Turns a row of any other shape into a request, or `{ custom_id, url, body }`.',
      '((row: never, index: number) => object | Promise<object>)',
    ),
    concurrency: s.integer(
      'Rows in flight. Default: twice the `maxSequences` of the runtime, or 128 times the members of a pool; 128 for other services.',
      1,
      {
        maximum: 100_000,
      },
    ),
    window: s.integer(
      'Rows that are read ahead, so that rows with the same beginning follow each other. Default 4096, with `order: "input"` 512.',
      1,
      { maximum: 1_000_000 },
    ),
    background: s.flag(
      true,
      'Whether rows run in the background: from the next step on they wait while other requests of the runtime run.',
    ),
    retries: s.integer('How often a row is retried after a failure of the network or the engine.', 0, {
      default: 3,
    }),
    timeoutMs: orNone('Maximum milliseconds of a row. Null: no limit.', 1),
    maxFailures: orNone('Rows that may fail; one more ends the run. Null: any number.', 0),
    onProgress: s.callback(
      'Called with the figures of the run, at most twice a second and at its end.',
      '((progress: BatchProgress) => void)',
    ),
    signal: {
      description: 'Ends the run: it rejects with `ABORTED`, and `resume` continues it.',
      kind: 'AbortSignal',
    },
  }),
  BatchProgress: {
    description: 'How far a batch is.',
    tsType: `{
  /** Rows with a line in the output or among the errors, those of earlier runs included. */
  readonly rows: number;
  /** Number of these rows that failed. */
  readonly failed: number;
  /** Rows that are being answered. */
  readonly running: number;
  /** Tokens of prompts and answers a second, over this run. */
  readonly tokensPerSecond: number;
  /** Share of the prompts' tokens that came from the prefix cache; null: no answer says. */
  readonly cachedShare: number | null;
  /** How much of the input is done, from 0 to 1; null: its length is not known. */
  readonly fraction: number | null;
  /** Null: not known. */
  readonly secondsLeft: number | null;
}`,
  },
};
