/** LoRA adapters: of a request, and loaded by a name, also with vLLM's names. */
import { acceptedFrom, type Definitions, orNull, type Schema } from './schema.ts';

const path: Schema = {
  description: 'A GGUF LoRA file or a PEFT folder: `adapter_config.json` and `adapter_model.safetensors`.',
  type: 'string',
  minLength: 1,
};
const base = orNull('string', {
  description: 'The model that it is for. Absent or null: the default model.',
});
const inPlace = orNull('boolean', {
  description: 'Replaces an adapter of this name; requests that run finish with that one.',
  default: false,
});

/** Definitions of adapters. */
export const adapterDefinitions: Definitions = {
  Adapter: {
    description: 'A LoRA adapter of a request.',
    type: 'object',
    properties: {
      model: orNull('string', {
        description:
          'A registered model or `name@step`: the adapter of its checkpoint; or a name of `adapters.load`, or of `models` with adapters.',
        minLength: 1,
        bounds: 'either this or `file`',
      }),
      file: orNull('string', {
        description:
          'A GGUF LoRA file or a PEFT folder, for any model of its architecture and sizes. Over HTTP only within the `adapterFolders` of the server.',
        minLength: 1,
        bounds: 'either this or `model`',
      }),
      scale: orNull('number', {
        description: 'What its output is multiplied by; 0 leaves it out.',
        default: 1,
        minimum: -1000,
        maximum: 1000,
      }),
    },
    additionalProperties: false,
  },
  AdapterLoadRequest: {
    description: 'An adapter that gets a name.',
    type: 'object',
    required: ['name', 'path'],
    properties: {
      name: { description: 'What requests call it.', type: 'string', minLength: 1 },
      path,
      base,
      loadInPlace: inPlace,
    },
    additionalProperties: false,
  },
  AdapterLoadBody: {
    description: 'The body of `POST /v1/load_lora_adapter`.',
    type: 'object',
    required: ['lora_name', 'lora_path'],
    properties: {
      lora_name: { description: 'What requests call it.', type: 'string', minLength: 1 },
      lora_path: path,
      base_model_name: base,
      load_inplace: inPlace,
    },
    additionalProperties: false,
  },
  AdapterUnloadBody: {
    description: 'The body of `POST /v1/unload_lora_adapter`.',
    type: 'object',
    required: ['lora_name'],
    properties: {
      lora_name: { description: 'The name that it was loaded by.', type: 'string', minLength: 1 },
      lora_int_id: acceptedFrom('vLLM'),
    },
    additionalProperties: false,
  },
};
