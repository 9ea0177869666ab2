// src/protocol/schemas and test/request-fields.json -> docs/request-fields.md
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { loadSchemas } from './build-validators.mjs';
import { boundsOf } from './schema-types.mjs';

const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '..');

/** Definitions that the page shows, in order, and what it says before their fields. */
const SECTIONS = {
  ChatCompletionRequest: 'The body of `POST /v1/chat/completions`, and the argument of `createCompletion`.',
  DeveloperMessage:
    'A message with the role `developer`. `system`, `user` and `function` have the same fields but `tools`.',
  AssistantMessage:
    'A message with the role `assistant`. The message of a response can be given back as it is.',
  ToolMessage: 'A message with the role `tool`.',
  CustomMessage: 'A message with any other role.',
  Tool: 'An item of `tools`. Further keys reach the chat template as they are.',
  StreamOptions: 'The value of `stream_options`.',
  StructuredOutputs: 'The value of `structured_outputs`.',
  LogitsProcessorConstructor: 'An item of `logits_processors` that is built for the request.',
  TrainingJobRequest: 'The body of `POST /v1/preview/training-jobs`, and the argument of `train`.',
  ExperimentalConfig: 'The value of `experimental_config`.',
  TrajectoryGroup: 'An item of `trajectory_groups`.',
  Trajectory: 'An item of `trajectories`.',
  LogRequest: 'The body of `POST /v1/preview/models/{model_id}/log`.',
  ModelCreateRequest: 'The argument of `models.create`.',
  CheckpointDeleteRequest: 'The body of `DELETE /v1/preview/models/{model_id}/checkpoints`.',
  ListQuery: 'The query of lists.',
};

/** The whole page. `tests`: per field the tests that prove what the door checks, and what it then does, as `file > title`. */
export function toPage({ definitions }, tests) {
  const intro = `# Request fields

Generated from \`src/protocol/schemas\` by \`npm run docs\`: do not edit.

A field that is absent, or \`undefined\` in process, has its default. Nothing is converted: \`"2"\` is no integer. All faults of a
request are reported at once. A field that is not in these tables is a fault in process, and is ignored over HTTP. An open
field, \`any\`, is taken from OpenAI clients and changes nothing.
`;
  const sections = Object.entries(SECTIONS).map(([name, about]) => {
    const schema = definitions[name];
    const required = new Set(schema.required ?? []);
    const proves = name === 'ChatCompletionRequest';
    const head = [
      'Field',
      'Type',
      'Default',
      'Bounds',
      'What it does',
      ...(proves ? ['Checks shown by', 'Effect shown by'] : []),
    ];
    const rows = Object.entries(schema.properties).map(([field, one]) => [
      `\`${field}\``,
      typeWords(one, definitions),
      required.has(field) ? 'required' : defaultWords(one),
      boundsOf(one),
      one.description ?? '',
      ...(proves ? [proofs(tests[field]?.checks), proofs(tests[field]?.effect)] : []),
    ]);
    return `## ${name}\n\n${about}\n\n${table([head, head.map(() => '---'), ...rows])}`;
  });
  return [intro, ...sections].join('\n');
}

function table(rows) {
  return `${rows.map((row) => `| ${row.map((cell) => String(cell).replaceAll('|', '\\|')).join(' | ')} |`).join('\n')}\n`;
}

function typeWords(schema, definitions) {
  if (schema.$ref) {
    const name = schema.$ref.split('/').at(-1);
    const isNullable =
      [definitions[name].type ?? []].flat().includes('null') || / \| null$/.test(schema.tsType ?? '');
    return `\`${name}\`${isNullable ? ' or null' : ''}`;
  }
  if (schema.const !== undefined) return `\`${JSON.stringify(schema.const)}\``;
  if (schema.enum) return schema.enum.map((value) => `\`${JSON.stringify(value)}\``).join(', ');
  const types = [schema.type ?? 'any'].flat();
  return types
    .map((type) =>
      type === 'array' && schema.items ? `list of ${itemWords(schema.items, definitions)}` : type,
    )
    .join(' or ');
}

function itemWords(items, definitions) {
  return items.$ref ? typeWords(items, definitions) : [items.type].flat().join(' or ');
}

function defaultWords(schema) {
  return schema.default === undefined ? '' : `\`${JSON.stringify(schema.default)}\``;
}

/** Each `file > title` as a link to the file with the title as its text. */
function proofs(tests = []) {
  return tests
    .map((test) => {
      const [file, ...title] = test.split(' > ');
      return `[${title.join(' > ')}](../${file})`;
    })
    .join('<br>');
}

/** Reads the schemas and the tests, and makes the page. */
export async function buildPage() {
  const tests = JSON.parse(fs.readFileSync(path.join(root, 'test', 'request-fields.json'), 'utf8'));
  return toPage(await loadSchemas(), tests);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  fs.mkdirSync(path.join(root, 'docs'), { recursive: true });
  fs.writeFileSync(path.join(root, 'docs', 'request-fields.md'), await buildPage());
}
