import { setTimeout as delay } from 'node:timers/promises'

/** One step of a process's shutdown. */
export interface ShutdownStep {
  /** What it does, as in `Failed to …`. */
  readonly name: string
  /** How long it may take, in ms; after that the next step starts without waiting for it. */
  readonly limitMs: number
  readonly run: () => unknown
}

// Most steps take far less; the process has 9 s for all of them.
const STEP_MS = 3000

/** A step with the usual time limit, or its own in ms. */
export const step = (name: string, run: ShutdownStep['run'], limitMs = STEP_MS): ShutdownStep => ({
  name,
  limitMs,
  run,
})

/**
 * Runs the steps of a shutdown in order: when one fails, the others still run.
 * @throws AggregateError of all that failed or took too long, after the last step.
 */
export async function shutDown(steps: readonly ShutdownStep[]): Promise<void> {
  const errors: unknown[] = []
  for (const step of steps) await runStep(step).catch((error) => errors.push(error))
  if (errors.length > 0) throw new AggregateError(errors, 'Not everything could be stopped')
}

async function runStep({ name, limitMs, run }: ShutdownStep): Promise<void> {
  const done = new AbortController()
  const late = delay(limitMs, undefined, { signal: done.signal }).then(() => {
    throw new Error(`It took longer than ${limitMs} ms`)
  })
  try {
    await Promise.race([Promise.resolve().then(run), late])
  } catch (error) {
    throw new Error(`Failed to ${name}`, { cause: error })
  } finally {
    late.catch(() => {})
    done.abort()
  }
}
