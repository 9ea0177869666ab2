/** A chat model -> the header entries of a decision file whose prompts and labels are those of `decide`. */
import type { HeaderEntries } from '../../engine/native/index.ts';
import { errorAt } from '../../errors.ts';
import {
  DECISION_TEMPLATE,
  decisionHeader,
  type LabelType,
  type ModelLease,
  readDecisions,
  requireGguf,
} from '../../models/index.ts';
import { admitDecisionRequest, type ChatRequestOptions, checkDecisionRequest } from '../../protocol/index.ts';
import { KINDS } from './decision-file.ts';
import { frameOf, type PromptFrame, plainMessages } from './prompts.ts';

/** Type of decision files that has the same labels: yes and no, letters, digits. Of several forms it takes the likeliest. */
const TYPE: LabelType = 'lfm2-d1';
/** A request for its prompt only. */
const EMPTY = { input: '', questions: [{ type: 'predicate', instructions: '-' }] };

/** Fails with `UNSUPPORTED` for models without a chat template that shows a question once, and for decision files. */
export async function decisionEntries(
  { model, checkpoint }: Pick<ModelLease, 'model' | 'checkpoint'>,
  limits: ChatRequestOptions,
  signal: AbortSignal | undefined,
): Promise<HeaderEntries> {
  const { metadata } = requireGguf(model, 'model');
  const { prefix, type } = decisionHeader(metadata);
  if (type !== null)
    throw errorAt(
      'decisions',
      'UNSUPPORTED',
      'the model is a decision file already, with a prompt of its own',
    );
  const { chat } = admitDecisionRequest(checkDecisionRequest(EMPTY), limits);
  const frame = model.template && (await frameOf(model, chat, plainMessages(model, chat), signal));
  if (!frame)
    throw errorAt('decisions', 'UNSUPPORTED', 'the model has no chat template that shows a question once');
  const { temperatures = {} } = (checkpoint === null ? null : await readDecisions(checkpoint)) ?? {};
  const fitted = Object.entries(temperatures) as [keyof typeof KINDS, number][];
  return {
    textKeys: [`${prefix}type`, DECISION_TEMPLATE],
    texts: [TYPE, promptTemplate(frame)],
    numberKeys: fitted.map(([kind]) => `${prefix}temperature.${KINDS[kind]}`),
    numbers: Float32Array.from(fitted, ([, temperature]) => temperature),
  };
}

/** Returns the template of the prompts that `askQuestion` writes, in a frame. It has no line breaks, which templates may trim. */
function promptTemplate({ before, behind }: PromptFrame): string {
  const textOf = (name: string): string =>
    `{{ ${name} if ${name} is string else ${name} | tojson(separators=[',', ':']) }}`;
  const described = `{% if o.description %} - ${textOf('o.description')}{% endif %}`;
  const line = '{{ "\\n" }}';
  const criterion = (k: number, word: string): string =>
    `{% if options[${k}].description %}${word}: {% set d = options[${k}].description %}${textOf('d')}${line}{% endif %}`;
  return [
    `{{ ${JSON.stringify(before)} }}`,
    `{% if state is not none and state != '' %}${textOf('state')}{{ "\\n\\n" }}{% endif %}`,
    "{% set ask = instructions if instructions is string else instructions | tojson(separators=[',', ':']) %}",
    "{% if type == 'noul' %}",
    "{% if not (ask | trim).endswith('?') %}Is this true: {% endif %}{{ ask }}",
    `{% if options[0].description or options[1].description %}${line}${criterion(0, 'yes')}${criterion(1, 'no')}`,
    "{% else %}{{ ' ' }}{% endif %}Answer yes or no.",
    `{% elif type == 'choice' %}{{ ask }}${line}`,
    `{% for o in options %}{{ o.label }}: {{ o.key }}${described}${line}{% endfor %}`,
    "Answer with the {{ 'letters' if options | length > 26 else 'letter' }} of one option.",
    `{% else %}{{ ask }}${line}`,
    `{% for o in options %}{{ o.key }}: {% set d = o.description or o.key %}${textOf('d')}${line}{% endfor %}`,
    'Answer with the number of one level.{% endif %}',
    `{{ ${JSON.stringify(behind)} }}`,
  ].join('');
}
