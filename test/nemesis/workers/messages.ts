/** Messages that an HTTP worker sends to the nemesis, which survive the worker. */
export type WorkerMessage =
  /** The service has accepted the end of an attempt. */
  | { readonly kind: 'ended'; readonly jobId: string; readonly attempt: number }
  /** The service has refused the end of an attempt. `isLate`: the worker sent it although its lease had expired. */
  | {
      readonly kind: 'refused'
      readonly jobId: string
      readonly attempt: number
      readonly isLate: boolean
    }
  | { readonly kind: 'violation'; readonly text: string }

/** Arguments of the jobs, which tell the worker how to run them. */
export interface StepArgs {
  readonly word: string
  /** Number of progress reports, each after `ms`. */
  readonly steps: number
  readonly ms: number
  /** End of the first attempt; later ones are done. */
  readonly first: 'done' | 'failed' | 'release'
}

export const QUEUE = 'nemesis-workers'
export const TASK = 'step'
