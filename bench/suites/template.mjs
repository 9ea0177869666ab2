/**
 * Chat templates: compile and render times, beside a peer where it is installed. Needs `npm run setup`.
 * Input: the templates of ../shared/data/templates when present, else the small ones below. Output: bench results.
 */
import { existsSync, readFileSync } from 'node:fs';
import { pathToFileURL } from 'node:url';
import { ChatTemplate, compileChatTemplate } from '../../dist/template/index.js';

const GOLDEN = new URL('../../../shared/data/templates/golden-dev.jsonl', import.meta.url);
const CHATML =
  "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n' + message['content'] | trim + '<|im_end|>\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}";

/** Name -> template text. */
function templates() {
  if (!existsSync(GOLDEN)) return new Map([['chatml', CHATML]]);
  const lines = readFileSync(GOLDEN, 'utf8').split('\n').filter(Boolean);
  const rows = lines.map((line) => JSON.parse(line));
  return new Map(rows.map((row) => [row.template_id, row.template]));
}

/** A conversation of `count` messages of `characters` each, user first. */
function chat(count, characters) {
  const text = 'The quick brown fox jumps over the lazy dog. '
    .repeat(Math.ceil(characters / 45))
    .slice(0, characters);
  return Array.from({ length: count }, (_, i) => ({ role: i % 2 ? 'assistant' : 'user', content: text }));
}

function median(values) {
  return [...values].sort((a, b) => a - b)[values.length >> 1];
}

/** The median time of one call in milliseconds, after warming up. */
function timeOf(body, repeats) {
  body();
  body();
  const times = [];
  for (let i = 0; i < repeats; i++) {
    const start = performance.now();
    body();
    times.push(performance.now() - start);
  }
  return median(times);
}

function result(name, values, ratios) {
  const row = {
    name,
    unit: 'ms',
    median: median(values),
    min: Math.min(...values),
    max: Math.max(...values),
  };
  return ratios === undefined ? row : { ...row, ratios };
}

/** The peer's way to compile, or null where it is not installed. */
async function loadPeer() {
  try {
    const name = '@huggingface/jinja'; // not a dependency: measured only if installed
    const { Template } = await import(name);
    return Template;
  } catch {
    return null;
  }
}

/** Runs the benchmark; each number is a template's median, the row gives median and extremes over all templates. */
export async function run({ repeats = 15 } = {}) {
  const Peer = await loadPeer();
  const compile = [];
  const render = [];
  const long = [];
  const ratios = [];
  for (const text of templates().values()) {
    compile.push(timeOf(() => new ChatTemplate(text), repeats));
    const template = compileChatTemplate(text);
    const tokens = { bosToken: '<s>', eosToken: '</s>' };
    const input = { messages: chat(20, 300), addGenerationPrompt: false, ...tokens };
    try {
      template.render(input);
    } catch {
      continue; // needs tools or other inputs
    }
    render.push(timeOf(() => template.render(input), repeats));
    long.push(timeOf(() => template.render({ ...input, messages: chat(400, 1200) }), 5));
    if (Peer === null) continue;
    try {
      const peer = new Peer(text);
      const context = {
        messages: input.messages,
        add_generation_prompt: false,
        bos_token: '<s>',
        eos_token: '</s>',
      };
      ratios.push(timeOf(() => peer.render(context), repeats) / render.at(-1));
    } catch {
      // the peer does not render this template
    }
  }
  const peer = ratios.length === 0 ? undefined : { '@huggingface/jinja': median(ratios) };
  return [
    result('template compile', compile),
    result('template render, 20 messages', render, peer),
    result('template render, 400 messages of 1.2 kB', long),
  ];
}

if (process.argv[1] !== undefined && import.meta.url === pathToFileURL(process.argv[1]).href) {
  for (const row of await run()) {
    const extremes = `min ${row.min.toFixed(3)}, max ${row.max.toFixed(3)}`;
    const peers = Object.entries(row.ratios ?? {}).map(
      ([name, ratio]) => `, ${name} takes ${ratio.toFixed(1)} times as long`,
    );
    console.log(`${row.name}: median ${row.median.toFixed(3)} ${row.unit} (${extremes})${peers.join('')}`);
  }
}
