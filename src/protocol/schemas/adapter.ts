/** LoRA adapters: of a request, and loaded by a name, also with vLLM's names. */
import { acceptedFrom, type Definitions, object, orNull, type Schema, string } from './schema.ts';

const path: Schema = string(
  'A GGUF LoRA file or a PEFT folder: `adapter_config.json` and `adapter_model.safetensors`.',
  { minLength: 1 },
);
const base = orNull('string', 'The model that it is for. Absent or null: the default model.');
const inPlace = orNull(
  'boolean',
  'Replaces an adapter of this name; requests that run finish with that one.',
  { default: false },
);

/** Definitions of adapters. */
export const adapterDefinitions: Definitions = {
  Adapter: object('A LoRA adapter of a request.', [], {
    model: orNull(
      'string',
      'A registered model or `name@step`: the adapter of its checkpoint; or a name of `adapters.load`, or of `models` with adapters.',
      { minLength: 1, bounds: 'either this or `file`' },
    ),
    file: orNull(
      'string',
      'A GGUF LoRA file or a PEFT folder, for any model of its architecture and sizes. Over HTTP only within the `adapterFolders` of the server.',
      { minLength: 1, bounds: 'either this or `model`' },
    ),
    scale: orNull('number', 'What its output is multiplied by; 0 leaves it out.', {
      default: 1,
      minimum: -1000,
      maximum: 1000,
    }),
  }),
  AdapterLoadRequest: object('An adapter that gets a name.', ['name', 'path'], {
    name: string('What requests call it.', { minLength: 1 }),
    path,
    base,
    loadInPlace: inPlace,
  }),
  AdapterLoadBody: object('The body of `POST /v1/load_lora_adapter`.', ['lora_name', 'lora_path'], {
    lora_name: string('What requests call it.', { minLength: 1 }),
    lora_path: path,
    base_model_name: base,
    load_inplace: inPlace,
  }),
  AdapterUnloadBody: object('The body of `POST /v1/unload_lora_adapter`.', ['lora_name'], {
    lora_name: string('The name that it was loaded by.', { minLength: 1 }),
    lora_int_id: acceptedFrom('vLLM'),
  }),
};
