/** Requests of vLLM's clients about adapters -> adapters that are loaded by a name, from the folders that the server allows. */
import { errorAt, OnpolicyError } from '../../../errors.ts';
import { checkRequest, PathTranslation } from '../../../protocol/index.ts';
import { type RequestContext, unsupported } from './context.ts';
import { requireAdapterFile } from './model-access.ts';
import { type ServedResponse, text } from './wire.ts';

const PATHS = new PathTranslation({
  name: 'lora_name',
  path: 'lora_path',
  base: 'base_model_name',
  loadInPlace: 'load_inplace',
});

/** `POST /v1/load_lora_adapter`. */
export async function loadAdapter(context: RequestContext): Promise<ServedResponse> {
  const { service, validation, call } = context;
  requireFolders(context);
  const body = checkRequest('AdapterLoadBody', await context.body(), validation);
  const { lora_name: name, lora_path, base_model_name: base, load_inplace: loadInPlace } = body;
  const path = await requireAdapterFile(context, lora_path, 'lora_path');
  if (!service.adapters) throw unsupported('adapters');
  const { adapters } = service;
  await PATHS.run(() => adapters.load({ name, path, base, loadInPlace }, call)).catch((error: unknown) => {
    throw asBadRequest(error);
  });
  return text(`Success: LoRA adapter '${name}' added successfully.`);
}

/** `POST /v1/unload_lora_adapter`. */
export async function unloadAdapter(context: RequestContext): Promise<ServedResponse> {
  const { service, validation } = context;
  requireFolders(context);
  const { lora_name: name } = checkRequest('AdapterUnloadBody', await context.body(), validation);
  if (!service.adapters) throw unsupported('adapters');
  if (!(await service.adapters.unload(name)))
    throw errorAt(
      'lora_name',
      'NOT_FOUND',
      `the adapter ${JSON.stringify(name.slice(0, 200))} cannot be found`,
    );
  return text(`Success: LoRA adapter '${name}' removed successfully.`);
}

/** Throws if the server allows no adapter folders: the endpoints then do not exist. */
function requireFolders({ settings }: RequestContext): void {
  if (settings.adapterFolders.length > 0) return;
  throw new OnpolicyError(
    'NOT_FOUND',
    'this server loads no adapters: its option adapterFolders names no folder',
  );
}

/** Turns `CONFLICT` into a bad request, as vLLM answers a name that is taken. */
function asBadRequest(error: unknown): unknown {
  if (!(error instanceof OnpolicyError) || error.code !== 'CONFLICT') return error;
  return new OnpolicyError('INVALID_REQUEST', error.message, { cause: error, param: 'lora_name' });
}
