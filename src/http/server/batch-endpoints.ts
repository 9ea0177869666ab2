/** Files and batches of OpenAI's API. */
import type { Readable } from 'node:stream';
import type { Asker, BatchStore } from '../../batch-store/index.ts';
import { errorAt } from '../../errors.ts';
import { checkRequest } from '../../protocol/index.ts';
import { allows } from './auth.ts';
import { readJson } from './body.ts';
import type { EndpointHandler, RequestContext } from './context.ts';
import type { EventStream } from './event-stream.ts';
import { listQuery } from './list-query.ts';
import { readUpload } from './upload.ts';
import { json, type WireResponse } from './wire.ts';

/** `POST /v1/files`. */
export async function createFile(context: RequestContext): Promise<WireResponse> {
  const { request, settings } = context;
  const { files } = await context.openBatches();
  const keep = (bytes: Readable): Promise<string> => files.receive(bytes, settings.maxFileBytes);
  const { fields, filename, kept } = await readUpload(request, settings, keep);
  const purpose = fields.get('purpose');
  if (!purpose) {
    await files.drop(kept);
    throw errorAt('purpose', 'INVALID_REQUEST', 'this field is required');
  }
  return json(await files.publish(kept, { owner: askerOf(context).owner, filename, purpose }));
}

/** `GET /v1/files`. */
export const listFiles = stored(({ files }, context, asker) => files.list(listQuery(context), asker));

/** `GET /v1/files/{id}`. */
export const retrieveFile = stored(({ files }, { id }, asker) => files.retrieve(id, asker));

/** `DELETE /v1/files/{id}`. */
export const deleteFile = stored(async (store, { id }, asker) => {
  await store.deleteFile(id, asker);
  return { id, object: 'file', deleted: true };
});

/** `GET /v1/files/{id}/content`. */
export async function readFileContent(context: RequestContext): Promise<WireResponse> {
  const { files } = await context.openBatches();
  const bytes = await files.content(context.id, askerOf(context));
  const headers = { 'content-type': 'application/octet-stream' };
  return { status: 200, headers, body: toBody(bytes, context) };
}

/** `POST /v1/batches`. */
export async function createBatch(context: RequestContext): Promise<WireResponse> {
  const { scopes, validation, request, settings, rowsFor } = context;
  const checked = checkRequest('BatchRequest', await readJson(request, settings), validation);
  const { batches } = await context.openBatches();
  const asker = askerOf(context);
  return json(await batches.create(checked, { owner: asker.owner, scopes }, asker, rowsFor));
}

/** `GET /v1/batches`. */
export const listBatches = stored(({ batches }, context, asker) => batches.list(listQuery(context), asker));

/** `GET /v1/batches/{id}`. */
export const retrieveBatch = stored(({ batches }, { id }, asker) => batches.retrieve(id, asker));

/** `POST /v1/batches/{id}/cancel`. */
export const cancelBatch = stored(({ batches }, { id }, asker) => batches.cancel(id, asker));

/** An endpoint that asks the store of files and batches. */
function stored(
  ask: (store: BatchStore, context: RequestContext, asker: Asker) => Promise<object>,
): EndpointHandler {
  return async (context) => json(await ask(await context.openBatches(), context, askerOf(context)));
}

function askerOf({ call, scopes }: RequestContext): Asker {
  return { owner: call.clientKey, isAdmin: allows(scopes, ['admin']) };
}

/** Bytes that are read as fast as they are sent. */
function toBody(bytes: AsyncIterable<Uint8Array>, { call, beginStream }: RequestContext): EventStream {
  const parts = bytes[Symbol.asyncIterator]();
  const end = beginStream();
  let isOver = false;
  let cut: (reason: unknown) => void = () => {};
  const finish = (outcome: Parameters<typeof end>[0]): void => {
    if (isOver) return;
    isOver = true;
    call.signal.removeEventListener('abort', onAbort);
    end(outcome);
    void parts.return?.();
  };
  const fail = (error: unknown): void => {
    finish('failed');
    cut(error);
  };
  const onAbort = (): void => fail(call.signal.reason);
  call.signal.addEventListener('abort', onAbort);
  return {
    idle: '',
    async read() {
      try {
        const { done, value } = await parts.next();
        if (!done && !isOver) return value;
        finish('complete');
      } catch (error) {
        fail(error); // the status is sent: the reader sees a connection that breaks
      }
      return null;
    },
    leave: () => finish('left'),
    onCut(callback) {
      cut = callback;
    },
  };
}
