import type { Readable } from 'node:stream'

/** The process of a command, and how it exits. */

/** Exit statuses, which `--help` and the guide list. */
export const STATUS = { done: 0, failed: 1, usage: 2, refused: 3, unreachable: 4 } as const

/** Part of a process that commands use. */
export interface Io {
  readonly env: Readonly<Record<string, string | undefined>>
  readonly stdin: Readable
  readonly stdout: TextStream
  readonly stderr: TextStream
  /** Aborted by Ctrl-C, SIGTERM and a closed standard output, with the exit status as the reason. */
  readonly signal: AbortSignal
  /** Returns the time in ms. */
  readonly now: () => number
}

export interface TextStream {
  write(text: string): unknown
  readonly isTTY?: boolean
  readonly columns?: number
}

/** Wrong arguments. The message says what to change. */
export class UsageError extends Error {}
