/** Options of batches: many requests out of a file, answered into another one. */
import * as s from './schema.ts';

const file = (description: string): s.Schema =>
  s.string(description, { minLength: 1, expected: 'a path of a file' });
const orNone = (description: string, least: number): s.Schema => ({
  ...s.integer(description, least),
  type: ['integer', 'null'],
});

/** Paths of requests that a row may have. */
export const BATCH_URLS = [
  '/v1/chat/completions',
  '/v1/completions',
  '/v1/embeddings',
  '/v1/responses',
  '/v1/messages',
  '/v1/rerank',
  '/v1/score',
  '/v1/classify',
] as const;

/** Definitions of requests. */
export const batchRequestDefinitions: s.Definitions = {
  BatchRequest: s.object('Asks a server for a batch, as OpenAI does.', ['input_file_id', 'endpoint'], {
    input_file_id: s.string('The file of rows.', { minLength: 1 }),
    endpoint: s.oneOf('Where rows without a `url` would be sent to.', [...BATCH_URLS]),
    completion_window: s.string('Accepted from OpenAI clients; a batch takes as long as it takes.'),
    metadata: {
      description: 'Kept with the batch.',
      type: ['object', 'null'],
      additionalProperties: { type: 'string', expected: 'a text' },
      tsType: 'Readonly<Record<string, string>> | null',
    },
  }),
};

/** Definitions of these options. */
export const batchDefinitions: s.Definitions = {
  BatchUrl: s.oneOf('Where a row would be sent to over HTTP.', [...BATCH_URLS]),
  BatchOptions: {
    description: 'Options of `batch`.',
    title: 'options',
    type: 'object',
    properties: {
      output: file('Where answers go, a line of JSON for each. Absent: only to the reader of the run.'),
      errors: file(
        'Where rows that failed go. Default: beside the output, `out.errors.jsonl` for `out.jsonl`.',
      ),
      resume: s.flag(
        false,
        'Whether to go on where an earlier run with this output ended, or begin. Without it the output must not exist.',
      ),
      order: s.oneOf(
        'Lines as rows are completed, or in the order of the input. The latter holds back up to a window of answers, which a killed run computes again.',
        ['completion', 'input'],
        { default: 'completion' },
      ),
      url: {
        ...s.ref('BatchUrl'),
        description:
          'What rows without a `url` ask for. Default: chat completions for `messages`, text completions for `prompt`.',
      },
      model: s.string('The model of rows that name none.', { minLength: 1, expected: 'the name of a model' }),
      seed: {
        description:
          'Gives each row without a `seed` one of its own, by its `custom_id`: the same in a repeated run.',
        type: ['integer', 'string'],
        default: 0,
      },
      toRequest: s.callback(
        'Makes a request of a row of any other shape: a request, or `{ custom_id, url, body }`.',
        '((row: never, index: number) => object | Promise<object>)',
      ),
      concurrency: {
        ...s.integer(
          'Rows that are asked for at the same time. Default: as many as make it faster, by measurement.',
          1,
        ),
        maximum: 100_000,
      },
      window: {
        ...s.integer(
          'Rows that are read ahead, so that rows with the same beginning follow each other. Default 4096, with `order: "input"` 512.',
          1,
        ),
        maximum: 1_000_000,
      },
      background: s.flag(
        true,
        "Whether rows yield to the runtime's other requests: they wait from the next step on while one of those runs.",
      ),
      retries: s.integer(
        'How often a row is asked for again after a failure of the network or the engine.',
        0,
        { default: 3 },
      ),
      timeoutMs: orNone('Most milliseconds of a row. Null: no limit.', 1),
      maxFailures: orNone('Rows that may fail; one more ends the run. Null: any number.', 0),
      onProgress: s.callback(
        'Called with the numbers of the run, twice a second at most and at its end.',
        '((progress: BatchProgress) => void)',
      ),
      signal: {
        description: 'Ends the run: it rejects with `ABORTED`, and `resume` goes on.',
        kind: 'AbortSignal',
      },
    },
    additionalProperties: false,
  },
  BatchProgress: {
    description: 'How far a batch is.',
    tsType: `{
  /** Rows with a line in the output or among the errors, those of earlier runs included. */
  readonly rows: number;
  /** Of these, the rows that failed. */
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
