/** Answers to requests that compare or label texts, in vLLM's forms, which clients of Jina and Cohere also read. */

/** The documents of a `rerank`, the best one first. */
export interface RerankResponse {
  id: string;
  /** The model as the caller named it. */
  model: string;
  usage: RankUsage;
  results: RerankResult[];
}

/** One document. */
export interface RerankResult {
  /** Index of the document in the request. */
  index: number;
  /** Absent with `return_documents: false`. */
  document?: { text: string };
  /** A larger score means a better match. */
  relevance_score: number;
}

/** The scores of some pairs. */
export interface ScoreResponse {
  id: string;
  object: 'list';
  created: number;
  model: string;
  /** One score per pair, in order. */
  data: PairScore[];
  usage: RankUsage;
}

/** The score of one pair. */
export interface PairScore {
  index: number;
  object: 'score';
  score: number;
}

/** The labels of some texts. */
export interface ClassifyResponse {
  id: string;
  object: 'list';
  created: number;
  model: string;
  /** One classification per text, in order. */
  data: Classification[];
  usage: RankUsage;
}

/** The label of one text. */
export interface Classification {
  index: number;
  /** The most probable label. */
  label: string;
  /** Probability of each label, in the order of the model's file. */
  probs: number[];
  num_classes: number;
}

/** Tokens of a request. */
export interface RankUsage {
  /** Tokens of all texts. */
  prompt_tokens: number;
  /** Equal to `prompt_tokens`. */
  total_tokens: number;
}
