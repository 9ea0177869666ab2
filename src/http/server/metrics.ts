/** Counts of requests and the engine's figures -> text in the format of Prometheus. */
import type { EngineStats } from '../../engine/index.ts';

/** Upper bounds of the histogram of durations, in seconds. */
const BUCKETS_S = [0.005, 0.025, 0.1, 0.5, 1, 2.5, 5, 10, 30, 60, 300] as const;

type Durations = { readonly counts: number[]; sumS: number; count: number };

/** Counts of a handler. Its size depends only on the endpoints, never on what clients send. */
export class RequestMetrics {
  readonly #requests = new Map<string, number>(); // labels -> how many
  readonly #durations = new Map<string, Durations>(); // endpoint -> histogram
  #active = 0;

  /** Counts the begin of a request. */
  begin(): void {
    this.#active += 1;
  }

  /** Counts the end of a request, its stream included. */
  end(method: string, endpoint: string, status: number, seconds: number): void {
    this.#active -= 1;
    const labels = `method="${method}",endpoint="${endpoint}",status="${status}"`;
    this.#requests.set(labels, (this.#requests.get(labels) ?? 0) + 1);
    let durations = this.#durations.get(endpoint);
    if (!durations) {
      durations = { counts: BUCKETS_S.map(() => 0), sumS: 0, count: 0 };
      this.#durations.set(endpoint, durations);
    }
    durations.sumS += seconds;
    durations.count += 1;
    for (const [i, bound] of BUCKETS_S.entries()) if (seconds <= bound) durations.counts[i]! += 1;
  }

  /** All metrics as text; `stats` is null for a service without an engine. */
  toText(stats: EngineStats | null): string {
    const lines = [
      ...heading('onpolicy_http_requests_active', 'gauge', 'Requests that are being answered.'),
      `onpolicy_http_requests_active ${this.#active}`,
      ...heading('onpolicy_http_requests_total', 'counter', 'Requests that were answered.'),
      ...[...this.#requests].map(([labels, count]) => `onpolicy_http_requests_total{${labels}} ${count}`),
      ...heading(
        'onpolicy_http_request_seconds',
        'histogram',
        'Time from a request to the end of its answer.',
      ),
      ...[...this.#durations].flatMap(([endpoint, durations]) => durationLines(endpoint, durations)),
      ...(stats ? engineLines(stats) : []),
    ];
    return `${lines.join('\n')}\n`;
  }
}

function durationLines(endpoint: string, { counts, sumS, count }: Durations): string[] {
  const name = 'onpolicy_http_request_seconds';
  return [
    ...counts.map((value, i) => `${name}_bucket{endpoint="${endpoint}",le="${BUCKETS_S[i]}"} ${value}`),
    `${name}_bucket{endpoint="${endpoint}",le="+Inf"} ${count}`,
    `${name}_sum{endpoint="${endpoint}"} ${sumS}`,
    `${name}_count{endpoint="${endpoint}"} ${count}`,
  ];
}

type Metric = readonly [name: string, type: 'gauge' | 'counter', help: string];

const ENGINE: Readonly<Record<keyof EngineStats, Metric>> = {
  running: ['onpolicy_sequences_running', 'gauge', 'Sequences that run.'],
  waiting: ['onpolicy_sequences_waiting', 'gauge', 'Sequences that wait.'],
  kvTokensInUse: ['onpolicy_kv_tokens_in_use', 'gauge', 'Cells of the KV cache that running sequences use.'],
  kvTokensCached: [
    'onpolicy_kv_tokens_cached',
    'gauge',
    'Cells of the KV cache that are kept for their prefix.',
  ],
  kvTokens: ['onpolicy_kv_tokens', 'gauge', 'Cells of the KV cache in all.'],
  steps: ['onpolicy_steps_total', 'counter', 'Steps of the engine.'],
  promptTokens: ['onpolicy_prompt_tokens_total', 'counter', 'Prompt tokens that were read.'],
  generatedTokens: ['onpolicy_generated_tokens_total', 'counter', 'Tokens that were sampled.'],
  draftedTokens: ['onpolicy_drafted_tokens_total', 'counter', 'Drafts that were checked.'],
  acceptedTokens: ['onpolicy_accepted_tokens_total', 'counter', 'Drafts that were sampled.'],
  tokensPerSecond: ['onpolicy_tokens_per_second', 'gauge', 'Tokens sampled per second of late.'],
};

function engineLines(stats: EngineStats): string[] {
  return Object.entries(ENGINE).flatMap(([field, [name, type, help]]) => [
    ...heading(name, type, help),
    `${name} ${stats[field as keyof EngineStats]}`,
  ]);
}

function heading(name: string, type: string, help: string): string[] {
  return [`# HELP ${name} ${help}`, `# TYPE ${name} ${type}`];
}
