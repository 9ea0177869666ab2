/** LoRA adapters: of a request, and loaded by a name, also with vLLM's names. */
import * as s from './schema.ts';

const path: s.Schema = s.string(
  'A GGUF LoRA file or a PEFT folder: `adapter_config.json` and `adapter_model.safetensors`.',
  { minLength: 1 },
);
const base = s.stringOrNull('The model that it is for. Absent or null: the default model.');
const inPlace = s.flagOrNull(
  false,
  'Replaces an adapter of this name; requests that run finish with that one.',
);

export const adapterDefinitions: s.Definitions = {
  Adapter: s.object('A LoRA adapter of a request.', [], {
    model: s.stringOrNull(
      'A registered model or `name@step`: the adapter of its checkpoint; or a name of `adapters.load`, or of `models` with adapters.',
      { minLength: 1, bounds: 'either this or `file`' },
    ),
    file: s.stringOrNull(
      'A GGUF LoRA file or a PEFT folder, for any model of its architecture and sizes. Over HTTP only within the `adapterFolders` of the server.',
      { minLength: 1, bounds: 'either this or `model`' },
    ),
    scale: s.numberOrNull('What its output is multiplied by; 0 leaves it out.', {
      default: 1,
      minimum: -1000,
      maximum: 1000,
    }),
  }),
  AdapterLoadRequest: s.object('An adapter that gets a name.', ['name', 'path'], {
    name: s.string('What requests call it.', { minLength: 1 }),
    path,
    base,
    loadInPlace: inPlace,
  }),
  AdapterLoadBody: s.object('The body of `POST /v1/load_lora_adapter`.', ['lora_name', 'lora_path'], {
    lora_name: s.string('What requests call it.', { minLength: 1 }),
    lora_path: path,
    base_model_name: base,
    load_inplace: inPlace,
  }),
  AdapterUnloadBody: s.object('The body of `POST /v1/unload_lora_adapter`.', ['lora_name'], {
    lora_name: s.string('The name that it was loaded by.', { minLength: 1 }),
    lora_int_id: s.acceptedFrom('vLLM'),
  }),
};
