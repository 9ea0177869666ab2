/** Files and batches over HTTP, in OpenAI's form. */

/** A file that a server keeps. */
export type FileObject = {
  readonly id: string;
  readonly object: 'file';
  readonly bytes: number;
  /** Seconds since 1970. */
  readonly created_at: number;
  readonly filename: string;
  readonly purpose: string;
  readonly status: 'processed';
};

/** A batch that a server answers, or has answered. Times are seconds since 1970. */
export type BatchObject = {
  readonly id: string;
  readonly object: 'batch';
  readonly endpoint: string;
  /** The errors that ended the batch, if its status is `failed`. */
  readonly errors: {
    readonly object: 'list';
    readonly data: readonly {
      readonly code: string;
      readonly message: string;
      readonly param: string | null;
      readonly line: number | null;
    }[];
  } | null;
  readonly input_file_id: string;
  readonly completion_window: string;
  /** `validating` means that the batch waits in the queue. */
  readonly status: 'validating' | 'in_progress' | 'completed' | 'failed' | 'cancelling' | 'cancelled';
  readonly output_file_id: string | null;
  readonly error_file_id: string | null;
  readonly created_at: number;
  readonly in_progress_at: number | null;
  readonly completed_at: number | null;
  readonly failed_at: number | null;
  readonly cancelling_at: number | null;
  readonly cancelled_at: number | null;
  readonly request_counts: {
    /** Rows that are done. Once the batch has ended, all of its rows. */
    readonly total: number;
    readonly completed: number;
    readonly failed: number;
  };
  readonly metadata: Readonly<Record<string, string>> | null;
};
