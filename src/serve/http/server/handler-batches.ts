/** The batches of one handler: its store, opened when it is needed, and rows answered as requests of the client that made them. */
import fs from 'node:fs/promises';
import path from 'node:path';
import { ifMissing } from '../../../common/index.ts';
import { fromNative } from '../../../errors.ts';
import { type BatchService, isBatchUrl, rowsAtOnceOf, urlFault } from '../../batch/index.ts';
import { type BatchClient, BatchStore, type RowsFor } from '../../batch/store/index.ts';
import { type Authorizer, callerOf } from './auth.ts';
import { type RequestContext, unsupported } from './context.ts';
import { type HandlerSettings, type Servable, validationOf } from './handler-options.ts';
import type { RequestMetrics } from './metrics.ts';
import { findEndpoints } from './routes.ts';
import { RunningStreams } from './running-streams.ts';
import { UNLIMITED } from './token-limits.ts';
import { needOf } from './token-need.ts';
import type { ServedRequest } from './wire.ts';

/** Opens, resumes and closes. */
export class HandlerBatches {
  readonly #service: Servable;
  readonly #settings: HandlerSettings;
  readonly #metrics: RequestMetrics;
  readonly #limitsOf: Authorizer['limitsOf'];
  #store: BatchStore | null = null;

  constructor(
    service: Servable,
    settings: HandlerSettings,
    metrics: RequestMetrics,
    limitsOf: Authorizer['limitsOf'],
  ) {
    this.#limitsOf = limitsOf;
    this.#service = service;
    this.#settings = settings;
    this.#metrics = metrics;
  }

  /** Opens the store and continues the batches that an earlier process has left in it. */
  async open(): Promise<BatchStore> {
    const folder = this.#folder;
    if (folder === null) throw unsupported('files and batches');
    const store = await BatchStore.open(folder);
    if (store !== this.#store) await store.batches.resume(this.rowsFor);
    this.#store = store;
    return store;
  }

  /** Opens the store if its folder exists. */
  async resume(): Promise<void> {
    const folder = this.#folder;
    if (folder !== null && (await fs.stat(folder).catch(ifMissing(null)))) await this.open();
  }

  async close(): Promise<void> {
    await this.#store?.close();
    this.#store = null;
  }

  readonly rowsFor: RowsFor = (client) => ({
    answer: async (url, body, call) => await this.#answer(client, url, body, call),
    defaultModel: null,
    concurrency: rowsAtOnceOf(this.#service),
  });

  /** Answers a row as the request of its client. */
  async #answer(
    client: BatchClient,
    ...[url, body, call]: Parameters<BatchService['answer']>
  ): Promise<object> {
    const [endpoint] = isBatchUrl(url) ? findEndpoints(url).endpoints : [];
    if (!endpoint) throw urlFault(url);
    const context = this.#contextOf(client, body, call);
    const limits = this.#limitsOf(client.owner);
    const need = limits?.hasTokens ? await needOf(endpoint, body, context) : 0;
    const reserved = (await limits?.reserveLater(need, context.call.signal)) ?? UNLIMITED;
    try {
      const response = await endpoint.handle({ ...context, charge: reserved.charge });
      return JSON.parse(response.body as string) as object;
    } finally {
      reserved.end();
    }
  }

  get #folder(): string | null {
    const { batchFolder } = this.#settings;
    const { home } = this.#service;
    return batchFolder ?? (home === undefined ? null : path.join(home, 'batches'));
  }

  /** Makes the context of a row's request. */
  #contextOf(
    { owner, scopes }: BatchClient,
    body: object,
    { signal, traceId, onIgnored = () => {} }: Parameters<BatchService['answer']>[2],
  ): RequestContext {
    const never = new AbortController().signal;
    return {
      request: ROW,
      url: ROW_URL,
      body: async () => structuredClone(body), // a copy, because the endpoint changes it
      bytes: async () => new Uint8Array(),
      validation: validationOf(this.#settings, onIgnored),
      id: '',
      scopes,
      setRequestId: () => {},
      call: {
        signal: signal ?? never,
        traceId: traceId ?? '',
        ...callerOf(owner, this.#settings),
        background: true,
      },
      isLimited: false,
      charge: () => {},
      reserve: async () => {},
      service: this.#service,
      settings: this.#settings,
      metrics: this.#metrics,
      streams: new RunningStreams(), // rows do not stream
      openBatches: () => this.open(),
      rowsFor: this.rowsFor,
      toError: fromNative,
      beginStream: () => () => {},
    };
  }
}

/** A request without headers, query and body, which stands for that of a row. */
const ROW: ServedRequest = {
  method: 'POST',
  url: 'http://localhost',
  headers: { get: () => null },
  body: null,
  signal: new AbortController().signal,
};
const ROW_URL = new URL(ROW.url);
