/** The header of a GGUF file -> what it says about decisions. Keys, types and rules are llama.cpp's. */

/** Types of decision files that are read from the logits of labels. */
export const LABEL_TYPES = ['openjev', 'lev', 'nimble', 'pplx-decider', 'lfm2-d1'] as const;
export type LabelType = (typeof LABEL_TYPES)[number];

/** Key of the template of a decision file. */
export const DECISION_TEMPLATE = 'tokenizer.chat_template.systemone';

/** The entries of a header about decisions. */
export type DecisionHeader = {
  /** Beginning of the keys of its other entries. */
  readonly prefix: string;
  /** Null if the file is no decision file. */
  readonly type: string | null;
};

export function decisionHeader(metadata: Readonly<Record<string, string | number>>): DecisionHeader {
  const prefix = `${metadata['general.architecture']}.decision.`;
  const type = metadata[`${prefix}type`];
  return { prefix, type: type === undefined ? null : String(type) };
}

/** Returns true for a type that is read from the logits of labels. */
export function isLabelType(type: string): type is LabelType {
  return LABEL_TYPES.includes(type as LabelType);
}
