import assert from 'node:assert/strict'
import { once } from 'node:events'
import { setImmediate as turn } from 'node:timers/promises'
import { queryObjects } from 'node:v8'
import { parentPort, Worker, workerData } from 'node:worker_threads'
import { createSemaphore } from '../../sql/connections/semaphore.ts'
import { until } from '../until.ts'

/**
 * Counts the objects that remain after many repetitions. Each case runs in a new thread. In a heap with all test files,
 * a count would take seconds and include compiled code.
 */

/** Number of repetitions of each case. */
export const REPETITIONS = 500

const CASES = { served: countAfterServing, givenUp: countAfterGivingUp, probes: countAfterProbes }

type Case = keyof typeof CASES

/** Runs a case in a new thread, and returns the number of objects that it left behind. @throws the case's error. */
export async function countKeptObjects(name: Case, url = ''): Promise<number> {
  const thread = new Worker(new URL(import.meta.url), { workerData: { name, url } })
  try {
    const [kept] = await once(thread, 'message')
    return kept
  } finally {
    await thread.terminate()
  }
}

const countObjects = (kind: new (...args: never[]) => unknown): number =>
  queryObjects(kind as new (...args: unknown[]) => unknown, { format: 'count' })

/** Counts the promises that remain after callers got a permit. Two callers always wait, with one promise each. */
async function countAfterServing(): Promise<number> {
  const semaphore = createSemaphore(1)
  const before = countObjects(Promise)
  let turns = 0
  let found = { kept: 0, waiting: 0 }
  const caller = async (): Promise<void> => {
    while (turns < REPETITIONS)
      await semaphore.run(async () => {
        await turn()
        if (++turns === REPETITIONS)
          found = { kept: countObjects(Promise) - before, waiting: semaphore.waiting }
      })
  }
  await Promise.all([caller(), caller(), caller()])
  assert.equal(found.waiting, 2)
  return found.kept
}

/** Counts the promises that remain after callers gave up waiting. */
async function countAfterGivingUp(): Promise<number> {
  const semaphore = createSemaphore(1, { waitMs: 1, createError: () => new Error('late') })
  const gate = Promise.withResolvers<void>()
  const held = semaphore.run(() => gate.promise)
  const before = countObjects(Promise)
  let late = 0
  const giveUp = (): Promise<void> => semaphore.run(turn).catch(() => void late++)
  for (let i = 0; i < REPETITIONS / 10; i++) await Promise.all(Array.from({ length: 10 }, giveUp))
  assert.equal(late, REPETITIONS)
  const kept = countObjects(Promise) - before
  gate.resolve()
  await held
  return kept
}

/** Counts the objects that remain after probes of a health check. */
async function countAfterProbes(url: string): Promise<number> {
  // Imported here, because the other cases do not need these modules.
  const { ConnectionGroup } = await import('../../sql/connections/driver.ts')
  const { startHealthCheck } = await import('../../sql/connections/health-check.ts')
  let probed = 0
  const healthCheck = await startHealthCheck({
    url,
    applicationName: 'healthCheck-memory',
    connections: new ConnectionGroup(),
    onChange: () => {},
    onValue: () => probed++,
    intervalMs: 0,
  })
  await until('the health check has warmed up', () => probed > 500)
  const [before, first] = [countObjects(Object), probed]
  await until('enough probes have run', () => probed > first + REPETITIONS)
  const kept = countObjects(Object) - before
  await healthCheck.close()
  return kept
}

if (parentPort !== null && workerData?.name in CASES)
  parentPort.postMessage(await CASES[workerData.name as Case](workerData.url))
