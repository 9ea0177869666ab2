/** Requests about models, their logs and their checkpoints. */
import * as s from './schema.ts';

/** Maximum number of items per page. */
export const MAX_PAGE = 100;

/** Mixes of weight types that llama.cpp writes, largest first. */
const GGUF_TYPES = [
  ...['f32', 'bf16', 'f16', 'q8_0', 'q6_k', 'q5_k_m', 'q5_k_s', 'q5_1', 'q5_0', 'q4_k_m', 'q4_k_s', 'q4_1'],
  ...['q4_0', 'iq4_nl', 'iq4_xs', 'q3_k_l', 'q3_k_m', 'q3_k_s', 'q2_k'],
];

export const modelDefinitions: s.Definitions = {
  ModelCreateRequest: s.object('Registers a model that can be trained.', ['base_model'], {
    base_model: s.string('What it starts from: a path, an `hf:` URI or an alias.', { minLength: 1 }),
    name: s.stringOrNull('A name for requests to use.', { minLength: 1 }),
    return_existing: s.flagOrNull(
      false,
      'Returns the model of that name if there is one, instead of an error.',
    ),
  }),
  ModelExportRequest: s.object('Writes a model with its adapters to the disk.', ['model', 'to'], {
    model: s.string(
      'A registered model or `name@step`, a name with adapters, or a path, an `hf:` URI or an alias of a GGUF model.',
      { minLength: 1 },
    ),
    adapters: s.listOrNull('Further adapters, in addition to those of `model`.', s.ref('Adapter')),
    to: s.string(
      'Path of the file, or of the folder: of the format `peft`, and of `safetensors` unless the path ends with `.safetensors`.',
      { minLength: 1 },
    ),
    format: s.string(
      '`gguf`: the model with its adapters merged into the weights. `safetensors`: these weights with the names of Hugging Face, in a folder with their `config.json`. `peft`: the adapters alone, as one.',
      { enum: ['gguf', 'safetensors', 'peft'], default: 'gguf' },
    ),
    type: s.stringOrNull(
      'What the weights become, in safetensors `f32`, `bf16` or `f16`. Absent or null: they keep their types; in safetensors `f32` where all are, else `bf16`.',
      { enum: [...GGUF_TYPES, null] },
    ),
    decisions: s.flagOrNull(
      false,
      'In `gguf`: makes the file a decision file of the type `lfm2-d1`, with the prompts of `decide` and the temperatures that were fitted for the checkpoint, so that llama.cpp answers decisions with it.',
    ),
    overwrite: s.flagOrNull(false, 'Replaces what is at `to`.'),
  }),
  LogRequest: s.object('Keeps trajectories with a model and computes their metrics.', ['trajectory_groups'], {
    split: s.string('The split whose metrics they count for, for example `train` or `val`.', {
      minLength: 1,
      default: 'val',
    }),
    trajectory_groups: s.list('The trajectories to store.', s.ref('TrajectoryGroup')),
  }),
  CheckpointDeleteRequest: s.object('Deletes checkpoints of a model.', ['steps'], {
    steps: s.list('Their steps. Steps without a checkpoint are reported, not refused.', {
      type: 'integer',
      minimum: 0,
    }),
  }),
  TokenizeRequest: s.object('A text to be turned into tokens.', ['text'], {
    text: s.string('The text.'),
    model: s.stringOrNull('Whose tokenizer. Default: the default model.'),
    addSpecialTokens: s.boolean('Adds the special tokens of the tokenizer around a text.', {
      default: false,
    }),
    parseSpecial: s.boolean('Reads the text of special tokens as those tokens.', { default: false }),
  }),
  DetokenizeRequest: s.object('Tokens to be turned into text.', ['ids'], {
    ids: s.list('Ids of the vocabulary.', { type: 'integer', minimum: 0 }),
    model: s.stringOrNull('Whose tokenizer. Default: the default model.'),
    skipSpecialTokens: s.boolean('Leaves the text of special tokens out.', { default: false }),
  }),
  ListQuery: s.object('Which page of a list.', [], {
    after: s.stringOrNull('Id of the last item of the previous page.', { minLength: 1 }),
    limit: s.integerOrNull('Items of the page.', { default: 20, minimum: 1, maximum: MAX_PAGE }),
    order: s.oneOf('Oldest first, or newest first.', ['asc', 'desc', null], { default: 'desc' }),
  }),
};
