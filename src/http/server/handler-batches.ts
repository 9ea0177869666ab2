/** The batches of one handler: its store, opened when it is needed, and rows answered as requests of the client that made them. */
import fs from 'node:fs/promises';
import path from 'node:path';
import { isBatchUrl, urlFault } from '../../batch/index.ts';
import { type BatchClient, BatchStore, type RowsFor } from '../../batch-store/index.ts';
import { ifMissing } from '../../common/index.ts';
import { fromNative } from '../../errors.ts';
import { type RequestContext, unsupported } from './context.ts';
import type { HandlerSettings, Servable } from './handler-options.ts';
import type { RequestMetrics } from './metrics.ts';
import { findEndpoints } from './routes.ts';
import type { WireRequest } from './wire.ts';

/** Opens, resumes and closes. */
export class HandlerBatches {
  readonly #service: Servable;
  readonly #settings: HandlerSettings;
  readonly #metrics: RequestMetrics;
  #store: BatchStore | null = null;

  constructor(service: Servable, settings: HandlerSettings, metrics: RequestMetrics) {
    this.#service = service;
    this.#settings = settings;
    this.#metrics = metrics;
  }

  /** The store; continues what an earlier process has left in it. */
  async open(): Promise<BatchStore> {
    const folder = this.#folder;
    if (folder === null) throw unsupported('files and batches');
    const store = await BatchStore.open(folder);
    if (store !== this.#store) await store.batches.resume(this.rowsFor);
    this.#store = store;
    return store;
  }

  /** Opens the store if there is one. */
  async resume(): Promise<void> {
    const folder = this.#folder;
    if (folder !== null && (await fs.stat(folder).catch(ifMissing(null)))) await this.open();
  }

  async close(): Promise<void> {
    await this.#store?.close();
    this.#store = null;
  }

  readonly rowsFor: RowsFor = (client) => async (url, body, call) => {
    const [endpoint] = isBatchUrl(url) ? findEndpoints(url).endpoints : [];
    if (!endpoint) throw urlFault(url);
    const response = await endpoint.handle(this.#contextOf(client, body, call));
    return JSON.parse(response.body as string) as object;
  };

  get #folder(): string | null {
    const { batchFolder } = this.#settings;
    const { home } = this.#service;
    return batchFolder ?? (home === undefined ? null : path.join(home, 'batches'));
  }

  /** A row as a request. Its tokens do not count for what its client may do in a minute: it waits for others anyway. */
  #contextOf(
    { owner, scopes }: BatchClient,
    body: object,
    { signal, traceId }: Parameters<ReturnType<RowsFor>>[2],
  ): RequestContext {
    const never = new AbortController().signal;
    return {
      request: ROW,
      body: async () => structuredClone(body), // the endpoint changes it
      validation: { wire: true, dropUnknown: true },
      id: '',
      scopes,
      setRequestId: () => {},
      call: { signal: signal ?? never, traceId: traceId ?? '', clientKey: owner, background: true },
      isLimited: false,
      charge: () => {},
      service: this.#service,
      settings: this.#settings,
      metrics: this.#metrics,
      openBatches: () => this.open(),
      rowsFor: this.rowsFor,
      toError: fromNative,
      beginStream: () => () => {},
    };
  }
}

/** A row has no headers, no query and no body to read. */
const ROW: WireRequest = {
  method: 'POST',
  url: new URL('http://localhost'),
  header: () => null,
  body: { read: async () => {}, parts: async function* () {}, stop: () => {} },
  address: undefined,
  onLeave: () => () => {},
};
