declare module 'parse-prometheus-text-format' {
  /** A metric with its lines. */
  type Family = {
    readonly name: string;
    readonly help: string;
    readonly type: string;
    readonly metrics: readonly Readonly<Record<string, unknown>>[];
  };
  // biome-ignore lint/style/noDefaultExport: the package has one
  export default function parse(text: string): Family[];
}
