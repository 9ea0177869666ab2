/** What requests that compare or label texts are answered with: vLLM's forms, which clients of Jina and Cohere read as well. */

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
  /** Its place in the request. */
  index: number;
  /** Absent with `return_documents: false`. */
  document?: { text: string };
  /** Larger fits better. */
  relevance_score: number;
}

/** The scores of some pairs. */
export interface ScoreResponse {
  id: string;
  object: 'list';
  created: number;
  model: string;
  /** One for each pair, in order. */
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
  /** One for each text, in order. */
  data: Classification[];
  usage: RankUsage;
}

/** The label of one text. */
export interface Classification {
  index: number;
  /** The most probable one. */
  label: string;
  /** Of each label, in the order of the model's file. */
  probs: number[];
  num_classes: number;
}

/** Tokens of a request. */
export interface RankUsage {
  /** Of all texts. */
  prompt_tokens: number;
  /** The same. */
  total_tokens: number;
}
