/** Counts of requests and the engine's statistics -> text in the format of Prometheus. */

import { Histogram, type HistogramData } from '../../../common/index.ts';
import type { EngineCount, EngineStats, EngineTimings } from '../../../protocol/service/index.ts';

/** Upper bounds of the histogram of durations, in seconds. */
const BUCKETS_S = [0.005, 0.025, 0.1, 0.5, 1, 2.5, 5, 10, 30, 60, 300] as const;

/** Counts of a handler. Their size depends on the number of endpoints, and does not grow with what clients send. */
export class RequestMetrics {
  readonly #requests = new Map<string, number>(); // labels -> how many
  readonly #durations = new Map<string, Histogram>(); // by endpoint
  #active = 0;

  /** Requests that are being answered. */
  get active(): number {
    return this.#active;
  }

  begin(): void {
    this.#active += 1;
  }

  /** Counts a request that has ended, together with its stream. */
  end(method: string, endpoint: string, status: number, seconds: number): void {
    this.#active -= 1;
    const labels = `method="${method}",endpoint="${endpoint}",status="${status}"`;
    this.#requests.set(labels, (this.#requests.get(labels) ?? 0) + 1);
    let durations = this.#durations.get(endpoint);
    if (!durations) {
      durations = new Histogram(BUCKETS_S);
      this.#durations.set(endpoint, durations);
    }
    durations.add(seconds);
  }

  /** Returns all metrics as text. `stats` is null for a service without an engine. */
  toText(stats: EngineStats | null): string {
    const seconds = 'onpolicy_http_request_seconds';
    const lines = [
      ...heading('onpolicy_http_requests_active', 'gauge', 'Requests that are being answered.'),
      `onpolicy_http_requests_active ${this.#active}`,
      ...heading('onpolicy_http_requests_total', 'counter', 'Requests that were answered.'),
      ...[...this.#requests].map(([labels, count]) => `onpolicy_http_requests_total{${labels}} ${count}`),
      ...heading(seconds, 'histogram', 'Time from a request to the end of its answer.'),
      ...[...this.#durations].flatMap(([endpoint, durations]) =>
        histogramLines(seconds, durations.data(), `endpoint="${endpoint}"`),
      ),
      ...(stats ? engineLines(stats) : []),
    ];
    return `${lines.join('\n')}\n`;
  }
}

/** Returns the lines of a histogram. `labels`: labels of every line; may be empty. */
function histogramLines(name: string, { bounds, counts, sum }: HistogramData, labels = ''): string[] {
  const more = labels === '' ? '' : `${labels},`;
  const own = labels === '' ? '' : `{${labels}}`;
  let total = 0;
  const buckets = counts.map((count, i) => {
    total += count;
    return `${name}_bucket{${more}le="${bounds[i] ?? '+Inf'}"} ${total}`;
  });
  return [...buckets, `${name}_sum${own} ${sum}`, `${name}_count${own} ${total}`];
}

type Metric = readonly [name: string, type: 'gauge' | 'counter', help: string];

const ENGINE: Readonly<Record<EngineCount, Metric>> = {
  running: ['onpolicy_sequences_running', 'gauge', 'Sequences that run.'],
  waiting: ['onpolicy_sequences_waiting', 'gauge', 'Sequences that wait.'],
  kvTokensInUse: ['onpolicy_kv_tokens_in_use', 'gauge', 'Cells of the KV cache that running sequences use.'],
  kvTokensCached: [
    'onpolicy_kv_tokens_cached',
    'gauge',
    'Cells of the KV cache that are kept for their prefix.',
  ],
  kvTokens: ['onpolicy_kv_tokens', 'gauge', 'All cells of the KV cache.'],
  steps: ['onpolicy_steps_total', 'counter', 'Steps of the engine.'],
  promptTokens: ['onpolicy_prompt_tokens_total', 'counter', 'Prompt tokens that were computed.'],
  generatedTokens: ['onpolicy_generated_tokens_total', 'counter', 'Tokens that were sampled.'],
  draftedTokens: ['onpolicy_drafted_tokens_total', 'counter', 'Draft tokens that were verified.'],
  acceptedTokens: ['onpolicy_accepted_tokens_total', 'counter', 'Draft tokens that were accepted.'],
  tokensPerSecond: ['onpolicy_tokens_per_second', 'gauge', 'Tokens sampled per second recently.'],
};

const TIMINGS: Readonly<Record<keyof EngineTimings, readonly [name: string, help: string]>> = {
  queueSeconds: ['onpolicy_queue_seconds', 'Time from a request to its first step.'],
  firstTokenSeconds: ['onpolicy_time_to_first_token_seconds', 'Time from a request to its first token.'],
  betweenTokensSeconds: ['onpolicy_time_between_tokens_seconds', 'Time from one token to the next.'],
  promptTokens: ['onpolicy_request_prompt_tokens', 'Tokens of a prompt.'],
  cachedPromptTokens: [
    'onpolicy_request_cached_prompt_tokens',
    'Tokens of a prompt that came from the prefix cache.',
  ],
};

function engineLines(stats: EngineStats): string[] {
  const counts = Object.entries(ENGINE).flatMap(([field, [name, type, help]]) => [
    ...heading(name, type, help),
    `${name} ${stats[field as EngineCount]}`,
  ]);
  const timings = Object.entries(TIMINGS).flatMap(([field, [name, help]]) => [
    ...heading(name, 'histogram', help),
    ...histogramLines(name, stats.timings[field as keyof EngineTimings]),
  ]);
  return [...counts, ...timings];
}

function heading(name: string, type: string, help: string): string[] {
  return [`# HELP ${name} ${help}`, `# TYPE ${name} ${type}`];
}
