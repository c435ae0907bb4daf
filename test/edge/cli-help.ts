import { Readable } from 'node:stream'
import type { TextStream } from '../../edge/cli/io.ts'
import { runCommandLine } from '../../edge/cli/run.ts'

/** Runs the command line in the test's process. */

export interface CliOptions {
  readonly env?: Readonly<Record<string, string>>
  /** Text or bytes of the standard input, or a stream that the test controls. */
  readonly stdin?: string | Uint8Array | Readable
  /** True for a terminal of 100 columns. */
  readonly isTTY?: boolean
  readonly now?: () => number
}

export interface RunningCommand {
  /** Resolves with the exit status. */
  readonly status: Promise<number>
  /** Text of the standard output so far. */
  readonly out: () => string
  /** Text of the standard error so far. */
  readonly err: () => string
  /** Ends it as Ctrl-C does. */
  interrupt(): void
}

export function startCli(words: readonly string[], options: CliOptions = {}): RunningCommand {
  const { env = {}, stdin = '', isTTY = false, now = Date.now } = options
  const texts = { out: '', err: '' }
  const capture = (name: 'out' | 'err'): TextStream => ({
    isTTY,
    columns: 100,
    write: (text) => {
      texts[name] += text
    },
  })
  const abort = new AbortController()
  const io = {
    env,
    stdin: stdin instanceof Readable ? stdin : Readable.from([stdin]),
    stdout: capture('out'),
    stderr: capture('err'),
    signal: abort.signal,
    now,
  }
  return {
    status: runCommandLine(words, io),
    out: () => texts.out,
    err: () => texts.err,
    interrupt: () => abort.abort(130),
  }
}

export interface CommandResult {
  readonly status: number
  readonly out: string
  readonly err: string
}

/** Runs a command to its end. */
export async function runCli(words: readonly string[], options?: CliOptions): Promise<CommandResult> {
  const command = startCli(words, options)
  return { status: await command.status, out: command.out(), err: command.err() }
}
