/** Requests about models, their logs and their checkpoints. */
import { type Definitions, orNull, ref } from './schema.ts';

/** Most items of one page. */
export const MAX_PAGE = 100;

/** Mixes of weight types that llama.cpp writes, the largest first. */
const GGUF_TYPES = [
  ...['f32', 'bf16', 'f16', 'q8_0', 'q6_k', 'q5_k_m', 'q5_k_s', 'q5_1', 'q5_0', 'q4_k_m', 'q4_k_s', 'q4_1'],
  ...['q4_0', 'iq4_nl', 'iq4_xs', 'q3_k_l', 'q3_k_m', 'q3_k_s', 'q2_k'],
];

/** Definitions of these requests. */
export const modelDefinitions: Definitions = {
  ModelCreateRequest: {
    description: 'Registers a model that can be trained.',
    type: 'object',
    required: ['base_model'],
    properties: {
      base_model: {
        description: 'What it starts from: a path, an `hf:` URI or an alias.',
        type: 'string',
        minLength: 1,
      },
      name: { description: 'A name to ask for it by.', type: ['string', 'null'], minLength: 1 },
      return_existing: {
        description: 'Gives back the model of that name when there is one, instead of an error.',
        type: ['boolean', 'null'],
        default: false,
      },
    },
    additionalProperties: false,
  },
  ModelExportRequest: {
    description: 'Writes a model with its adapters to the disk.',
    type: 'object',
    required: ['model', 'to'],
    properties: {
      model: {
        description:
          'A registered model or `name@step`, a name with adapters, or a path, an `hf:` URI or an alias of a GGUF model.',
        type: 'string',
        minLength: 1,
      },
      adapters: {
        description: 'Further adapters, beside those of `model`.',
        type: ['array', 'null'],
        items: ref('Adapter'),
      },
      to: {
        description:
          'Path of the file, or of the folder: of the format `peft`, and of `safetensors` unless the path ends with `.safetensors`.',
        type: 'string',
        minLength: 1,
      },
      format: {
        description:
          '`gguf`: the model with its adapters merged into the weights. `safetensors`: these weights with the names of Hugging Face, in a folder with their `config.json`. `peft`: the adapters alone, as one.',
        type: 'string',
        enum: ['gguf', 'safetensors', 'peft'],
        default: 'gguf',
      },
      type: {
        description:
          'What the weights become, in safetensors `f32`, `bf16` or `f16`. Absent or null: they keep their types; in safetensors `f32` where all are, else `bf16`.',
        type: ['string', 'null'],
        enum: [...GGUF_TYPES, null],
      },
      overwrite: orNull('boolean', { description: 'Replaces what is at `to`.', default: false }),
    },
    additionalProperties: false,
  },
  LogRequest: {
    description: 'Keeps trajectories with a model and computes their metrics.',
    type: 'object',
    required: ['trajectory_groups'],
    properties: {
      split: {
        description: 'Which metrics they count for, for example `train` or `val`.',
        type: 'string',
        minLength: 1,
        default: 'val',
      },
      trajectory_groups: { description: 'What to keep.', type: 'array', items: ref('TrajectoryGroup') },
    },
    additionalProperties: false,
  },
  CheckpointDeleteRequest: {
    description: 'Deletes checkpoints of a model.',
    type: 'object',
    required: ['steps'],
    properties: {
      steps: {
        description: 'Their steps. Steps without a checkpoint are reported, not refused.',
        type: 'array',
        items: { type: 'integer', minimum: 0 },
      },
    },
    additionalProperties: false,
  },
  TokenizeRequest: {
    description: 'A text to be turned into tokens.',
    type: 'object',
    required: ['text'],
    properties: {
      text: { description: 'The text.', type: 'string' },
      model: { description: 'Whose tokenizer. Default: the default model.', type: ['string', 'null'] },
      addSpecialTokens: {
        description: 'Adds the tokens that the model wants around a text.',
        type: 'boolean',
        default: false,
      },
      parseSpecial: {
        description: 'Reads the text of special tokens as those tokens.',
        type: 'boolean',
        default: false,
      },
    },
    additionalProperties: false,
  },
  DetokenizeRequest: {
    description: 'Tokens to be turned into text.',
    type: 'object',
    required: ['ids'],
    properties: {
      ids: { description: 'Ids of the vocabulary.', type: 'array', items: { type: 'integer', minimum: 0 } },
      model: { description: 'Whose tokenizer. Default: the default model.', type: ['string', 'null'] },
      skipSpecialTokens: {
        description: 'Leaves the text of special tokens out.',
        type: 'boolean',
        default: false,
      },
    },
    additionalProperties: false,
  },
  ListQuery: {
    description: 'Which page of a list.',
    type: 'object',
    properties: {
      after: {
        description: 'Id of the last item of the page before.',
        type: ['string', 'null'],
        minLength: 1,
      },
      limit: {
        description: 'Items of the page.',
        type: ['integer', 'null'],
        default: 20,
        minimum: 1,
        maximum: MAX_PAGE,
      },
      order: { description: 'Oldest first, or newest first.', enum: ['asc', 'desc', null], default: 'desc' },
    },
    additionalProperties: false,
  },
};
