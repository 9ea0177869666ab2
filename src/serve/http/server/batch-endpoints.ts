/** Files and batches of OpenAI's API. */

import { errorAt } from '../../../errors.ts';
import { checkRequest } from '../../../protocol/index.ts';
import { AnswerStream } from '../../../protocol/service/index.ts';
import type { Asker, BatchStore } from '../../batch/store/index.ts';
import { allows } from './auth.ts';
import { type EndpointHandler, listQuery, type RequestContext } from './context.ts';
import { BYTES } from './event-stream.ts';
import { answerResponse } from './stream-response.ts';
import { readUpload } from './upload.ts';
import { json, type ServedResponse } from './wire.ts';

/** `POST /v1/files`. */
export async function createFile(context: RequestContext): Promise<ServedResponse> {
  const { request, settings } = context;
  const { files } = await context.openBatches();
  const { fields, filename, kept } = await readUpload(request, settings, {
    keep: (bytes) => files.receive(bytes, settings.maxFileBytes),
    discard: (id) => files.drop(id),
  });
  try {
    const purpose = fields.get('purpose');
    if (!purpose) throw errorAt('purpose', 'INVALID_REQUEST', 'this field is required');
    return json(await files.publish(kept, { owner: askerOf(context).owner, filename, purpose }));
  } catch (error) {
    await files.drop(kept);
    throw error;
  }
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
export async function readFileContent(context: RequestContext): Promise<ServedResponse> {
  const { files } = await context.openBatches();
  const bytes = await files.content(context.id, askerOf(context));
  const parts = bytes[Symbol.asyncIterator]();
  const stream = new AnswerStream(parts, () => void parts.return?.());
  return answerResponse(stream, { ...context, charge: () => {} }, BYTES);
}

/** `POST /v1/batches`. */
export async function createBatch(context: RequestContext): Promise<ServedResponse> {
  const { scopes, validation, rowsFor } = context;
  const checked = checkRequest('BatchRequest', await context.body(), validation);
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
