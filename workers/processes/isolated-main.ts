/** Entry point of an isolated process: runs a group of suspects; see `isolated-runner.ts`. */
import { writeFileSync } from 'node:fs'
import { enableCodeCache } from '../../tasks/platform/code-cache.ts'
import { hideEnvironment, listSecretPaths } from '../../tasks/platform/settings/environment.ts'
import type { Pools } from '../threads/pools.ts'
import type { Outcome } from '../threads/protocol.ts'
import type { IsolatedCommand, IsolatedReport } from './isolated-runner.ts'

enableCodeCache()
hideEnvironment()
try {
  // Makes the kernel kill this process first when memory runs out.
  if (process.platform === 'linux') writeFileSync('/proc/self/oom_score_adj', '1000')
} catch {
  // Some containers forbid writing this file.
}
// The worker is gone: no process is left to receive an outcome.
process.on('disconnect', () => process.exit())
const openedPools = Promise.withResolvers<Pools>()
process.on('message', async (message: IsolatedCommand) => {
  if (message.kind === 'settings') return openedPools.resolve(await openPools(message.setup))
  const pools = await openedPools.promise
  if (message.kind === 'abort') return pools.abort(message.id, message.attempt, message.reason)
  const { queue, pool, job } = message
  const of = { id: job.id, attempt: job.attempt }
  sendReport({ kind: 'started', ...of })
  sendReport({ kind: 'ended', ...of, outcome: toIsolated(await pools.run(queue, pool, job)) })
})

/** A thread that dies proves its job guilty only if it had no other. */
const toIsolated = (outcome: Outcome): Outcome =>
  outcome.kind === 'crashed'
    ? { kind: 'crashed', host: outcome.host === 'shared' ? 'group' : 'isolated' }
    : outcome

type Setup = (IsolatedCommand & { kind: 'settings' })['setup']

async function openPools({ settings, databaseUrl, taskModules, keys }: Setup): Promise<Pools> {
  const [{ createLog }, { createChildPool }, { createPools }] = await Promise.all([
    import('../../tasks/platform/log.ts'),
    import('../children/pool.ts'),
    import('../threads/pools.ts'),
  ])
  const log = await createLog(settings.logLevel, 'isolated')
  return createPools({
    settings: { ...settings, workerThreads: 1 },
    databaseUrl,
    taskModules,
    keys,
    log,
    children: createChildPool({ log, hidden: listSecretPaths(settings) }),
    onEvent: (event) => sendReport({ kind: 'event', event }),
    onSpan: (span) => sendReport({ kind: 'span', span }),
  })
}

function sendReport(message: IsolatedReport): void {
  // Ignore errors: if the worker is gone, `disconnect` ends this process.
  process.send?.(message, undefined, undefined, () => {})
}
