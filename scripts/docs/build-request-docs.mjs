// src/protocol/schemas -> docs/request-fields.md: every field in a group, every named type explained
//                      -> docs/runtime-options.md: every option of a public function
// endpoints of the server -> their list in docs/serving.md
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { loadSchemas } from '../build-protocol.mjs';
import { boundsOf } from '../schema-types.mjs';

const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '../..');

/** Definitions that the page shows, in order, and what it says before their fields. */
const SECTIONS = {
  DeveloperMessage:
    'A message with the role `developer`. `system`, `user` and `function` have the same fields except `tools`.',
  AssistantMessage:
    'A message with the role `assistant`. The message of a response can be sent back unchanged.',
  ToolMessage: 'A message with the role `tool`.',
  CustomMessage: 'A message with any other role.',
  FunctionTool: 'An item of `tools`. Additional keys are passed to the chat template.',
  FunctionDefinition: 'The value of `function` there, and an item of `functions`.',
  TextCompletionRequest:
    'The body of `POST /v1/completions`, and the argument of `createTextCompletion`: [text completions](clients.md#text-completions).',
  EmbeddingRequest:
    'The body of `POST /v1/embeddings`, and the argument of `createEmbeddings`: [embeddings](vectors.md#embeddings).',
  TranscriptionRequest:
    'The form of `POST /v1/audio/transcriptions`, and the argument of `transcribe`: [transcripts](media.md#transcripts).',
  RerankRequest:
    'The body of `POST /v1/rerank`, and the argument of `rerank`: [ranking](vectors.md#rankings-scores-and-labels).',
  ScoreRequest:
    'The body of `POST /v1/score`, and the argument of `score`: [ranking](vectors.md#rankings-scores-and-labels).',
  ClassifyRequest:
    'The body of `POST /v1/classify`, and the argument of `classify`: [ranking](vectors.md#rankings-scores-and-labels).',
  DecisionRequest:
    'The body of `POST /v1/decisions`, and the argument of `decide`: [decisions](decisions.md).',
  DecisionInputMessage: 'An item of `input` of a `DecisionRequest`.',
  DecisionPredicate: 'An item of `questions` of a `DecisionRequest`.',
  DecisionChoice: 'An item of `questions` of a `DecisionRequest`.',
  DecisionScore: 'An item of `questions` of a `DecisionRequest`.',
  ParseAnswerRequest:
    'The body of `POST /v1/chat/completions/derender`, and the argument of `parseAnswer`: [answers from tokens](clients.md#answers-from-tokens).',
  SystemOneRequest:
    "The body of `POST /v1/systemone`, and of `/v1/decisions` with a `state`: [TypeSafe's form](decisions.md#over-http).",
  SystemOneNoul: 'A value of `questions` of a `SystemOneRequest`.',
  SystemOneChoice: 'A value of `questions` of a `SystemOneRequest`.',
  SystemOneScore: 'A value of `questions` of a `SystemOneRequest`.',
  MessageRequest:
    "The body of `POST /v1/messages`, and the argument of `createMessage`: [Anthropic's messages](clients.md#anthropics-messages).",
  MessageTurn: 'An item of `messages` of a `MessageRequest`.',
  MessageThinking: 'The value of `thinking`.',
  MessageCustomTool: 'An item of `tools` of a `MessageRequest`.',
  MessageToolChoice: 'The value of `tool_choice` of a `MessageRequest`.',
  MessageOutputConfig: 'The value of `output_config`.',
  MessageTextBlock: 'A block of a `MessageTurn`, and of `system`.',
  MessageToolUseBlock: 'A block of an assistant message.',
  MessageToolResultBlock: "A block of a user's message.",
  ResponseRequest:
    "The body of `POST /v1/responses`, and the argument of `createResponse`: [OpenAI's responses](clients.md#openais-responses).",
  ResponseInputMessage: 'An item of `input`.',
  ResponseFunctionCallItem: 'An item of `input`.',
  ResponseFunctionResultItem: 'An item of `input`.',
  ResponseCustomCallItem: 'An item of `input`.',
  ResponseCustomResultItem: 'An item of `input`.',
  ResponseReasoningInput: 'An item of `input`.',
  ResponseItemReference: 'An item of `input`.',
  ResponseText: 'The value of `text`.',
  ResponseTextFormat: 'The value of `format` of a `ResponseText`.',
  ResponseReasoning: 'The value of `reasoning`.',
  ResponseFunctionTool: 'An item of `tools` of a `ResponseRequest`.',
  ResponseCustomTool: 'An item of `tools` of a `ResponseRequest`.',
  ResponseNamespaceTool: 'An item of `tools` of a `ResponseRequest`.',
  ResponseInputFormat: 'The value of `format` of a `ResponseCustomTool`.',
  ResponseAllowedTools: 'A value of `tool_choice` of a `ResponseRequest`.',
  ResponseFunctionChoice: 'A value of `tool_choice` of a `ResponseRequest`, and an item of `tools` there.',
  ResponseCustomChoice: 'A value of `tool_choice` of a `ResponseRequest`, and an item of `tools` there.',
  Adapter: 'An item of `adapters`: [adapters](model-files.md#adapters).',
  ReasoningBudget: 'The value of `reasoning`.',
  StreamOptions: 'The value of `stream_options`.',
  RepetitionDetection: 'The value of `repetition_detection`.',
  SpeculationSettings: 'A value of `speculation`.',
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

/** Types that tables name and no section shows. */
const FORMS = {
  Message: 'one of the messages below; `role` says which',
  ContentPart:
    '`{ type: "text", text }`, also `input_text`, `output_text`, `refusal`, `thinking`, or a bare string. `{ type: "file", file: { file_data, filename } }` with text in base64 or a `data:` URI is text; with an image it needs a model with a projector, as `image_url` and `input_audio` do: [media](media.md). Other parts are `UNSUPPORTED`',
  ToolCall:
    '`{ id, type: "function", function: { name, arguments } }`; `arguments` is JSON text. Of a custom tool: `{ id, type: "custom", custom: { name, input } }`',
  ToolChoice:
    '`"none"`, `"auto"`, `"required"`, `{ type: "function", function: { name } }`, `{ type: "custom", custom: { name } }`, or `{ type: "allowed_tools", allowed_tools: { mode, tools } }`; `mode` is `"auto"` or `"required"`, `tools` a list of the two previous forms',
  Tool: '`{ type: "function", function }` or a custom tool, `{ type: "custom", custom: { name, description, format } }`; `format` is absent, `{ type: "text" }`, or `{ type: "grammar", grammar: { syntax, definition } }` with the syntax `"lark"` or `"regex"`. [How the model sees them](chat-formats.md#custom-tools)',
  FunctionCall: '`{ name, arguments }`; `arguments` is JSON text',
  FunctionChoice: '`"none"`, `"auto"`, or `{ name }`',
  ResponseFormat:
    '`{ type: "text" }`, `{ type: "json_object" }`, also with a `schema`, `{ type: "json_schema", json_schema: { name, schema } }`, or `{ type: "structural_tag", format }`',
  Speculation: 'false, `"auto"`, or `SpeculationSettings`',
  Prediction: '`{ type: "content", content }`; `content` is a text, or a list of `{ type: "text", text }`',
  MessageBlock:
    '`{ type: "text", text }`, `{ type: "image", source }`, `{ type: "document", source }` of plain text, `{ type: "thinking", thinking }`, `MessageToolUseBlock`, `MessageToolResultBlock`, `{ type: "redacted_thinking" }` or a block of a tool of Anthropic\'s servers',
  MessageTool:
    'a `MessageCustomTool`, or `{ type: "bash_20250124", name }` of the kinds `bash_*`, `text_editor_*` and `memory_*`',
  ResponseInputItem:
    'a `ResponseInputMessage`, `ResponseFunctionCallItem`, `ResponseFunctionResultItem`, `ResponseCustomCallItem`, `ResponseCustomResultItem`, `ResponseReasoningInput` or `ResponseItemReference`; items of an answer are accepted. Also [what other servers add](clients.md#openais-responses)',
  DecisionInputItem:
    'a `DecisionInputMessage`, `ResponseFunctionCallItem`, `ResponseFunctionResultItem`, `ResponseCustomCallItem` or `ResponseCustomResultItem`',
  GeneratedTokens:
    '`{ choices: [{ token_ids, finish_reason, stop_reason, logprobs }], request_id, created, usage, prompt_logprobs }`: an answer of `POST /inference/v1/generate`',
  DecisionQuestion: 'a `DecisionPredicate`, `DecisionChoice` or `DecisionScore`',
  SystemOneQuestion: 'a `SystemOneNoul`, `SystemOneChoice` or `SystemOneScore`',
  DecisionPart:
    '`{ type: "input_text", text }`, `{ type: "output_text", text }`, `{ type: "refusal", refusal }`, `{ type: "input_image", image_url }` or `{ type: "input_json", data }`',
  ResponseTool: 'a `ResponseFunctionTool` or a `ResponseCustomTool`',
  ResponseInputPart:
    '`{ type: "input_text", text }`, `{ type: "output_text", text }`, `{ type: "refusal", refusal }`, `{ type: "input_image", image_url }`, or `{ type: "input_file", filename, file_data }` of text',
  ResponseReasoningText: '`{ type: "reasoning_text", text }`',
  MessageResultBlock: 'the blocks `text`, `image` and `document`',
  LogitsProcessorItem:
    'a registered name, or a `LogitsProcessorConstructor`; in process also a function `(outputIds, logits) => { ... }` that edits `logits`',
  MessageOrChoice: 'a `Message`, or a choice of a response, which has a `message`',
  History: '`{ messages_and_choices, tools }`, as in a `Trajectory`',
  RolloutException: '`{ type, message }`',
};

/** Definitions that the page of options shows, in order, and what it says before their fields. */
const OPTIONS = {
  RuntimeOptions: 'The argument of `createRuntime`.',
  ModelOptions:
    "A value of `model` and of `models` of a `RuntimeOptions`. The last seven, if absent, are the runtime's.",
  RopeOptions: 'The value of `rope`: [long contexts](choosing-a-model.md).',
  AdapterOption: 'An item of `adapters` of a model: [adapters](model-files.md#adapters).',
  HubOptions: 'The value of `hub`: [downloads](choosing-a-model.md#downloads).',
  MediaOptions: 'The value of `media`: [media](media.md).',
  MemoryOptions: 'The value of `memory`.',
  RunToolsOptions: 'The third argument of `runTools`: [functions in a loop](clients.md#functions-in-a-loop).',
  AppTool: 'A value of `tools` there.',
  McpServer: 'The argument of `connectMcp`: [tools of MCP servers](clients.md#tools-of-mcp-servers).',
  TrainingOptions: 'The value of `training`: [training](training.md).',
  SpeculativeConfig: 'The value of `speculative_config`: [speculation](exactness.md#speculation).',
  InspectOptions: 'The second argument of `inspectModel`.',
  CallOptions: 'The last argument of every method that answers, trains or downloads.',
  ServeOptions:
    'The second argument of `serve`: [HTTP](serving.md). `createHandler` takes the same except `port`, `host` and `graceMs`.',
  Token: 'An item of `tokens`.',
  ConnectOptions: 'The argument of `connect`: [the client](serving.md).',
  PoolOptions: 'The second argument of `createPool`: [pools](serving.md#from-one-process-to-many).',
  BatchOptions: 'The second argument of `batch`: [many requests](batch.md).',
  GatherOptions: 'The last argument of `gatherTrajectoryGroups`: [rollouts](agents.md).',
  JudgeOptions: 'The argument of `judge`.',
  TrainLoopOptions: 'The argument of `trainLoop`.',
  LoopEvaluation: 'The value of `evaluate` of a `TrainLoopOptions`.',
  TrainerOptions: 'The argument of `openTrainer`: [training](training.md).',
  FullTrainerOptions: 'The argument of `openFullTrainer`.',
};

/** The page of options. */
function toOptionsPage({ definitions, argumentDefinitions }) {
  const all = { ...definitions, ...argumentDefinitions };
  const link = (text, name) => {
    if (OPTIONS[name]) return `[${text}](#${name.toLowerCase()})`;
    if (SECTIONS[name]) return `[${text}](request-fields.md#${name.toLowerCase()})`;
    return FORMS[name] ? `[${text}](request-fields.md#types)` : text;
  };
  const page = [
    `# Options

Generated from \`src/protocol/schemas\` by \`npm run docs\`: do not edit.

An option that is absent or \`undefined\` has its default. An unknown option or a wrong value is an error with the code \`INVALID_REQUEST\`
that names its path, such as \`models.small.rope.factor\`. Nothing is converted: \`"2"\` is not an integer.
`,
    ...Object.entries(OPTIONS).map(
      ([name, about]) => `## ${name}\n\n${about}\n\n${fieldTable(flat(all[name]), all, 'Option')}`,
    ),
  ].join('\n');
  return page.replaceAll(/`([A-Z]\w+)`/g, link).replaceAll(/docs\/([\w-]+\.md)(#[\w-]+)?/g, '[$1]($1$2)');
}

/** The same with the fields of inner settings beside them, by their path. */
function flat({ properties, required = [] }) {
  const fields = Object.entries(properties).flatMap(([name, field]) => {
    if (!field.properties || field.additionalProperties !== false) return [[name, field]];
    const inner = flat(field);
    required = [...required, ...inner.required.map((one) => `${name}.${one}`)];
    return [
      [name, field],
      ...Object.entries(inner.properties).map(([one, value]) => [`${name}.${one}`, value]),
    ];
  });
  return { properties: Object.fromEntries(fields), required };
}

/** The page of fields. */
function toFieldsPage({ definitions, fieldGroups }) {
  const request = definitions.ChatCompletionRequest;
  const groups = Object.entries(fieldGroups).map(([name, fields]) => [name, Object.keys(fields)]);
  const links = groups.map(
    ([name]) => `[${name.toLowerCase()}](#${name.toLowerCase().replaceAll(' ', '-')})`,
  );
  const parts = [
    `# Request fields

Generated from \`src/protocol/schemas\` by \`npm run docs\`: do not edit.

A field that is absent, or \`undefined\` in process, has its default. Nothing is converted: \`"2"\` is not an integer. One error reports
all faults of a request. An unknown field is an error in process; over HTTP it is ignored and listed
in the header \`X-Ignored-Fields\`, unless it resembles a known one.

## ChatCompletionRequest

The body of \`POST /v1/chat/completions\`, and the argument of \`createCompletion\`: ${links.join(', ')}.
`,
    ...groups.map(([name, fields]) =>
      name === 'Accepted without effect'
        ? `### ${name}\n\nClients of OpenAI's API and of vLLM send these. They have no effect:\n${fields.map((field) => `\`${field}\``).join(', ')}.\n`
        : `### ${name}\n\n${fieldTable(request, definitions, 'Field', fields)}`,
    ),
    `## Types\n\n${table([
      ['Type', 'Form'],
      ['---', '---'],
      ...Object.entries(FORMS).map(([name, form]) => [`\`${name}\``, form]),
    ])}`,
    ...Object.entries(SECTIONS).map(([name, about]) => {
      const schema = definitions[name];
      return `## ${name}\n\n${about}\n\n${fieldTable(schema, definitions, 'Field')}`;
    }),
  ];
  const page = parts.join('\n');
  const named = [...page.matchAll(/`([A-Z]\w+[a-z])`/g)].map(([, name]) => name);
  requireSame(
    'type',
    [...new Set(named)].filter((name) => !SECTIONS[name]),
    Object.keys(FORMS),
  );
  return page;
}

function fieldTable(schema, definitions, what, fields = Object.keys(schema.properties)) {
  const required = new Set(schema.required ?? []);
  const head = [what, 'Type', 'Default', 'Bounds', 'What it does'];
  const rows = fields.map((field) => {
    const one = schema.properties[field];
    return [
      `\`${field}\``,
      typeWords(one, definitions),
      required.has(field) ? 'required' : defaultWords(one),
      boundsOf(one),
      one.description ?? '',
    ];
  });
  return table([head, head.map(() => '---'), ...rows]);
}

/** Throws where one list has an item that the other lacks, or the first has one twice. */
function requireSame(what, given, wanted) {
  const odd = [
    ...given.filter((name) => !wanted.includes(name)),
    ...wanted.filter((name) => given.filter((other) => other === name).length !== 1),
  ];
  if (odd.length > 0) throw new Error(`${what}: unknown, missing or listed twice: ${odd.join(', ')}`);
}

function table(rows) {
  return `${rows.map((row) => `| ${row.map((cell) => String(cell).replaceAll('|', '\\|')).join(' | ')} |`).join('\n')}\n`;
}

function typeWords(schema, definitions) {
  if (schema.kind) return schema.kind;
  if (schema.$ref) {
    const { enum: values, kind } = definitions[schema.$ref.split('/').at(-1)];
    if (values || kind) return typeWords({ enum: values, kind }, definitions);
    const name = schema.$ref.split('/').at(-1);
    const isNullable =
      [definitions[name].type ?? []].flat().includes('null') || / \| null$/.test(schema.tsType ?? '');
    return `\`${name}\`${isNullable ? ' or null' : ''}`;
  }
  if (schema.const !== undefined) return `\`${JSON.stringify(schema.const)}\``;
  if (schema.enum) return schema.enum.map((value) => `\`${JSON.stringify(value)}\``).join(', ');
  if (!schema.type && schema.tsType && schema.if) return unionWords(schema.tsType);
  const types = [schema.type ?? 'any'].flat();
  return types
    .map((type) =>
      type === 'array' && schema.items ? `list of ${itemWords(schema.items, definitions)}` : type,
    )
    .join(' or ');
}

function itemWords(items, definitions) {
  if (items.$ref && items.tsType) return unionWords(items.tsType);
  return items.$ref ? typeWords(items, definitions) : [items.type].flat().join(' or ');
}

/** Names and values of a union of TypeScript as code. */
function unionWords(tsType) {
  return tsType.replaceAll(/ ?\| ?/g, ' or ').replaceAll(/[A-Z]\w+|"\w+"/g, '`$&`');
}

function defaultWords(schema) {
  return schema.default === undefined ? '' : `\`${JSON.stringify(schema.default)}\``;
}

/** Reads the schemas and makes the pages, by their names. */
export async function buildPages() {
  const schemas = await loadSchemas();
  return { 'request-fields.md': toFieldsPage(schemas), 'runtime-options.md': toOptionsPage(schemas) };
}

/** docs/serving.md with the list of these endpoints. Those with the same words share a line. */
export function withEndpoints(page, endpoints) {
  const lines = new Map();
  for (const { method, path: at, scopes, docs } of endpoints) {
    const rest = `${scopes?.map((scope) => `\`${scope}\``).join(', ') ?? 'none'} | ${docs}`;
    lines.set(rest, [...(lines.get(rest) ?? []), `\`${method} ${at}\``]);
  }
  const list = [...lines].map(([rest, paths]) => `| ${paths.join(', ')} | ${rest} |`).join('\n');
  return page.replace(/(?<=\| \| scope of the token \| \|\n\|---\|---\|---\|\n)(\|.*\n)+/, () => `${list}\n`);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { endpoints } = await import('../../dist/serve/http/server/routes.js'); // needs `node scripts/compile.mjs`
  for (const [name, page] of Object.entries(await buildPages()))
    fs.writeFileSync(path.join(root, 'docs', name), page);
  const serving = path.join(root, 'docs/serving.md');
  fs.writeFileSync(serving, withEndpoints(fs.readFileSync(serving, 'utf8'), endpoints));
}
