// The folder of a decoder that takes embeddings -> one that sees: embed_tokens, a vision encoder of random weights, and a processor.
import fs from 'node:fs';
import path from 'node:path';
import { Graph } from './graph.mjs';

/** Sizes of the encoder: pictures of 32 x 32 pixels in patches of 8 x 8 become 16 rows. */
export const EYES = { side: 32, patch: 8, channels: 24, rows: 16 };

/** Mean and standard deviation that normalize pixels, per channel. */
export const PIXELS = { image_mean: [0.5, 0.4, 0.3], image_std: [0.2, 0.25, 0.3] };

/** Ids that the embedded model has no token for become these. */
const TOKENS = { '<image>': 961, '<fake_token_around_image>': 962, '<global-img>': 963 };

const TEMPLATE =
  "{% for message in messages %}{{ '<|im_start|>' + message.role + '\n' }}" +
  '{% if message.content is string %}{{ message.content }}{% else %}{% for part in message.content %}' +
  "{% if part.type == 'image' %}{{ '<image>' }}{% else %}{{ part.text }}{% endif %}{% endfor %}{% endif %}" +
  "{{ '<|im_end|>\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}";

const KINDS = {
  llava: {
    architecture: 'LlavaForConditionalGeneration',
    processor: 'LlavaProcessor',
    imageProcessor: 'CLIPImageProcessor',
    dims: ['batch_size', 3, EYES.side, EYES.side],
    preprocessing: { size: { height: EYES.side, width: EYES.side } },
    settings: { patch_size: EYES.patch, num_additional_image_tokens: 0, image_token: '<image>' },
  },
  idefics3: {
    architecture: 'Idefics3ForConditionalGeneration',
    processor: 'Idefics3Processor',
    imageProcessor: 'Idefics3ImageProcessor',
    dims: ['batch_size', 'num_images', 3, EYES.side, EYES.side],
    preprocessing: {
      size: { longest_edge: 2 * EYES.side },
      max_image_size: { longest_edge: EYES.side },
      do_image_splitting: true,
    },
    settings: { image_seq_len: EYES.rows },
  },
};

/** Adds all to a folder. `kind`: one of KINDS; `weights`: those of the decoder, whose embeddings are shared. */
export function writeVision(folder, kind, shape, weights) {
  const { architecture, processor, imageProcessor, dims, preprocessing, settings } = KINDS[kind];
  const edit = (name, change) => {
    const file = path.join(folder, name);
    const before = fs.existsSync(file) ? JSON.parse(fs.readFileSync(file, 'utf8')) : {};
    fs.writeFileSync(file, `${JSON.stringify(change(before), null, 2)}\n`);
  };
  edit('config.json', (text) => ({
    architectures: [architecture],
    model_type: kind,
    image_token_id: TOKENS['<image>'],
    text_config: text,
    vision_config: { image_size: EYES.side, patch_size: EYES.patch, hidden_size: EYES.channels },
  }));
  edit('preprocessor_config.json', () => ({
    processor_class: processor,
    image_processor_type: imageProcessor,
    do_resize: true,
    do_rescale: true,
    rescale_factor: 1 / 255,
    do_normalize: true,
    resample: 3,
    ...PIXELS,
    ...preprocessing,
  }));
  edit('processor_config.json', () => ({ processor_class: processor, ...settings }));
  edit('tokenizer.json', (tokenizer) => ({
    ...tokenizer,
    added_tokens: [
      ...tokenizer.added_tokens,
      ...Object.entries(TOKENS).map(([content, id]) => ({
        id,
        content,
        single_word: false,
        lstrip: false,
        rstrip: false,
        normalized: false,
        special: true,
      })),
    ],
  }));
  edit('tokenizer_config.json', (config) => ({ ...config, chat_template: TEMPLATE }));
  writeEmbeddings(path.join(folder, 'onnx', 'embed_tokens.onnx'), shape, weights);
  writeEncoder(path.join(folder, 'onnx', 'vision_encoder.onnx'), shape, dims);
}

function writeEmbeddings(file, shape, weights) {
  const graph = new Graph(file);
  const ids = graph.input('input_ids', 'int64', ['batch_size', 'sequence_length']);
  graph.add('Identity', [weights.embedding(graph, ids, shape)], {}, 'inputs_embeds');
  graph.output('inputs_embeds', 'float32', ['batch_size', 'sequence_length', shape.width]);
  graph.save();
}

/** Patches -> channels, a place is added, bent by tanh, -> rows of the width of embeddings. */
function writeEncoder(file, { width }, dims) {
  const { side, patch, channels, rows } = EYES;
  const { kernel, places, head } = eyeWeights(width);
  const graph = new Graph(file);
  const pixels = graph.input('pixel_values', 'float32', dims);
  const isTiled = dims.length === 5;
  if (isTiled) graph.input('pixel_attention_mask', 'bool', ['batch_size', 'num_images', side, side]);
  const weight = (name, size, values) => graph.weight(name, 'float32', size, Buffer.from(values.buffer));
  const tiles = graph.add('Reshape', [pixels, graph.ints([-1, 3, side, side])]);
  const seen = graph.add('Conv', [tiles, weight('kernel', [channels, 3, patch, patch], kernel)], {
    kernel_shape: [patch, patch],
    strides: [patch, patch],
  });
  const flat = graph.add('Reshape', [seen, graph.ints([0, channels, rows])]);
  const placed = graph.add('Add', [
    graph.add('Transpose', [flat], { perm: [0, 2, 1] }),
    weight('places', [rows, channels], places),
  ]);
  const bent = graph.add('Tanh', [placed]);
  graph.add('MatMul', [bent, weight('head', [channels, width], head)], {}, 'image_features');
  graph.output('image_features', 'float32', ['num_tiles', rows, width]);
  graph.save();
}

/** The encoder's weights: kernel (channels, 3, patch, patch), places (rows, channels), head (channels, width). */
export function eyeWeights(width) {
  const { patch, channels, rows } = EYES;
  let state = 20_261;
  const random = (count, scale) =>
    Float32Array.from({ length: count }, () => {
      state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
      return scale * (state / 2 ** 31 - 1);
    });
  return {
    kernel: random(channels * 3 * patch * patch, 0.1),
    places: random(rows * channels, 0.5),
    head: random(channels * width, 0.5),
  };
}
