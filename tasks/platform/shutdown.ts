import { setTimeout as delay } from 'node:timers/promises'

/** One step of a process's shutdown. */
export interface ShutdownStep {
  /** Verb phrase that completes `Failed to …`. */
  readonly name: string
  /** Time limit in ms; after it, the next step starts without waiting. */
  readonly timeoutMs: number
  readonly run: () => unknown
}

// Most steps take far less. All steps together must finish within 9 s.
const STEP_TIMEOUT_MS = 3000

/** Creates a step. The time limit in ms defaults to that of most steps. */
export const createStep = (
  name: string,
  run: ShutdownStep['run'],
  timeoutMs = STEP_TIMEOUT_MS,
): ShutdownStep => ({
  name,
  timeoutMs,
  run,
})

/**
 * Runs the steps of a shutdown in order, even if one fails.
 * @throws AggregateError with all failures and timeouts, after the last step.
 */
export async function shutDown(steps: readonly ShutdownStep[]): Promise<void> {
  const errors: unknown[] = []
  for (const step of steps) await runStep(step).catch((error) => errors.push(error))
  if (errors.length > 0) throw new AggregateError(errors, 'Some parts failed to stop')
}

async function runStep({ name, timeoutMs, run }: ShutdownStep): Promise<void> {
  const done = new AbortController()
  const timeout = delay(timeoutMs, undefined, { signal: done.signal }).then(() => {
    throw new Error(`Timed out after ${timeoutMs} ms`)
  })
  try {
    await Promise.race([Promise.resolve().then(run), timeout])
  } catch (error) {
    throw new Error(`Failed to ${name}`, { cause: error })
  } finally {
    timeout.catch(() => {})
    done.abort()
  }
}
