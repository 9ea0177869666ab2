/** A chat template -> the form in which it takes messages, found by rendering small chats once. This needs no list of models. */
import { inspect } from 'node:util';
import type { ChatTemplate, RenderInput } from '../template/index.ts';
import { type CallTraits, findCallTraits } from './call-traits.ts';
import { MARKS, type ProbeMessage, type Prober, showsOnce, textPart, tryRender } from './template-probe.ts';
import { findToolTraits, type ToolTraits } from './tool-traits.ts';

/** Content forms that a role takes. */
export type ContentForm = {
  /** True if a string is shown. */
  readonly text: boolean;
  /** True if the texts of a list of parts are shown. */
  readonly list: boolean;
};

/** Positions at which messages of the role `system` are shown. */
export type SystemPlaces = {
  /** One, as the first message. */
  readonly first: boolean;
  /** Several, before all other messages. */
  readonly many: boolean;
  /** Between other messages. */
  readonly middle: boolean;
};

const { system: S, user: U, answer: A, more: M, last: L } = MARKS;

type Known = {
  readonly plain: TemplateTraits;
  /** Traits with the variables of the last request that had variables. Used if the template shows no chat without them. */
  varied: { readonly key: string; readonly traits: TemplateTraits } | null;
};

const known = new WeakMap<ChatTemplate, Known>();

/**
 * Returns the traits of a template. They are found on first use and kept as long as the template. The variables of a request are used only
 * for a template that shows no chat without them.
 */
export function traitsOf(template: ChatTemplate, kwargs: Readonly<Record<string, unknown>>): TemplateTraits {
  let found = known.get(template);
  if (found === undefined) {
    found = { plain: new TemplateTraits(template, {}), varied: null };
    known.set(template, found);
  }
  if (found.plain.showsChats || Object.keys(kwargs).length === 0) return found.plain;
  const key = inspect(kwargs, { depth: null, maxArrayLength: null, maxStringLength: null });
  if (found.varied?.key !== key) found.varied = { key, traits: new TemplateTraits(template, kwargs) };
  return found.varied.traits;
}

export class TemplateTraits implements Prober {
  readonly template: ChatTemplate;
  readonly #kwargs: Readonly<Record<string, unknown>>;
  readonly #forms = new Map<string, ContentForm>();
  readonly #variables = new Map<string, boolean>();
  #withoutTools: null | readonly [] | undefined;
  #showsChats: boolean | undefined;
  #developer: 'developer' | 'system' | undefined;
  #systemPlaces: SystemPlaces | undefined;
  #calls: CallTraits | undefined;
  #tools: ToolTraits | undefined;

  constructor(template: ChatTemplate, kwargs: Readonly<Record<string, unknown>>) {
    this.template = template;
    this.#kwargs = kwargs;
  }

  /** Renders a chat. Returns null if the template fails. */
  render(messages: readonly ProbeMessage[], input: Partial<RenderInput> = {}): string | null {
    return this.#tryRender(messages, { tools: this.withoutTools, ...input });
  }

  #tryRender(messages: readonly ProbeMessage[], input: Partial<RenderInput>): string | null {
    const kwargs = { ...this.#kwargs, ...input.kwargs };
    return tryRender(this.template, { messages, ...input, kwargs });
  }

  /** The value of `tools` for a request without tools: null, or an empty list for a template that loops over it unconditionally. */
  get withoutTools(): null | readonly [] {
    if (this.#withoutTools === undefined) {
      const fails = (tools: null | readonly []) =>
        [U, [{ type: 'text', text: U }]].every(
          (content) => this.#tryRender([{ role: 'user', content }], { tools }) === null,
        );
      this.#withoutTools = fails(null) && !fails([]) ? [] : null;
    }
    return this.#withoutTools;
  }

  /**
   * True if the template shows everything that a user says in a chat. Other templates, such as one that shows only the last message, omit
   * messages on purpose: for these, messages are neither moved nor reported as missing.
   */
  get showsChats(): boolean {
    this.#showsChats ??= showsOnce(
      this.render([this.message('user', U), this.message('assistant', A), this.message('user', L)]),
      U,
      L,
    );
    return this.#showsChats;
  }

  /** Returns the content form of a role. Roles without a probe have the form of `user`. */
  formOf(role: string): ContentForm {
    const probed = Object.hasOwn(PROBES, role) ? (role as keyof typeof PROBES) : 'user';
    let form = this.#forms.get(probed);
    if (form === undefined) {
      const shows = (content: unknown, ...marks: readonly string[]) =>
        showsOnce(PROBES[probed](this, content), ...marks);
      const text = shows(S, S);
      const list = shows([textPart(S), textPart(M)], S, M);
      const isList = this.template.contentFormat === 'openai';
      form = text || list ? { text, list } : { text: !isList, list: isList };
      this.#forms.set(probed, form);
    }
    return form;
  }

  /** Returns a message with one text, in the content form of its role. */
  message(role: string, text: string, more: ProbeMessage = {}): ProbeMessage {
    return { role, content: this.formOf(role).text ? text : [textPart(text)], ...more };
  }

  /** The role for a developer's messages: `system` if the template does not show the role `developer`. */
  get developer(): 'developer' | 'system' {
    if (this.#developer === undefined) {
      const user = this.message('user', U);
      const shows = (role: string) =>
        [S, [textPart(S)]].some((content) => showsOnce(this.render([{ role, content }, user]), S, U));
      this.#developer = shows('developer') || !shows('system') ? 'developer' : 'system';
    }
    return this.#developer;
  }

  get systemPlaces(): SystemPlaces {
    if (this.#systemPlaces === undefined) {
      const [first, second] = [this.message('system', S), this.message('system', M)];
      const [user, answer, last] = [
        this.message('user', U),
        this.message('assistant', A),
        this.message('user', L),
      ];
      this.#systemPlaces = {
        first: showsOnce(this.render([first, user]), S, U),
        many: showsOnce(this.render([first, second, user]), S, M, U),
        middle: showsOnce(this.render([first, user, answer, second, last]), S, U, M, L),
      };
    }
    return this.#systemPlaces;
  }

  /** Returns true if the template renders a chat with this variable, and for a template that shows no chats. */
  takesVariable(name: string, value: string): boolean {
    const key = `${name} ${value}`;
    let isTaken = this.#variables.get(key);
    if (isTaken === undefined) {
      isTaken =
        !this.showsChats || this.render([this.message('user', U)], { kwargs: { [name]: value } }) !== null;
      this.#variables.set(key, isTaken);
    }
    return isTaken;
  }

  /** Forms in which the template takes calls, their results and the reasoning before them. */
  get calls(): CallTraits {
    this.#calls ??= findCallTraits(this);
    return this.#calls;
  }

  /** Forms in which the template takes tools. */
  get tools(): ToolTraits {
    this.#tools ??= findToolTraits(this);
    return this.#tools;
  }
}

/** Renders a chat in which a role has the given content. */
const PROBES = {
  user: (traits: TemplateTraits, content: unknown) => traits.render([{ role: 'user', content }]),
  system: (traits: TemplateTraits, content: unknown) =>
    traits.render([{ role: 'system', content }, traits.message('user', U)]),
  developer: (traits: TemplateTraits, content: unknown) =>
    traits.render([{ role: traits.developer, content }, traits.message('user', U)]),
  assistant: (traits: TemplateTraits, content: unknown) =>
    traits.render([traits.message('user', U), { role: 'assistant', content }, traits.message('user', L)]),
  tool: (traits: TemplateTraits, content: unknown) => traits.calls.renderResult(content),
};
