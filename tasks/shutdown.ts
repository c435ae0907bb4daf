import { setTimeout as delay } from 'node:timers/promises'

/** One step of a process's end. */
export interface ShutdownStep {
  /** What it does, as in `To … failed`. */
  readonly name: string
  /** How long it may take, in ms; then the next one begins beside it. */
  readonly limitMs: number
  readonly run: () => unknown
}

// What most steps take is far less; the process that ends has 9 s for all.
const STEP_MS = 3000

/** A step of the usual limit, or of its own in ms. */
export const step = (name: string, run: ShutdownStep['run'], limitMs = STEP_MS): ShutdownStep => ({
  name,
  limitMs,
  run,
})

/**
 * Takes a process apart, one step after the other: whatever becomes of one, the others have their turn.
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
    throw new Error(`To ${name} failed`, { cause: error })
  } finally {
    late.catch(() => {})
    done.abort()
  }
}
