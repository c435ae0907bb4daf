/** A process for suspects, which run alone, one at a time; see `alone.ts`. */
import { writeFileSync } from 'node:fs'
import { keepCode } from '../../tasks/code-cache.ts'
import { hideEnvironment, secretPaths } from '../../tasks/environment.ts'
import type { Pools } from '../threads/pools.ts'
import type { AloneAnswer, AloneMessage } from './alone.ts'

keepCode()
hideEnvironment()
try {
  // When memory runs out, the kernel kills this process first.
  if (process.platform === 'linux') writeFileSync('/proc/self/oom_score_adj', '1000')
} catch {
  // A container that forbids this has to decide itself what is killed first.
}
// Its worker is gone, and nobody is left to receive an outcome.
process.on('disconnect', () => process.exit())
const made = Promise.withResolvers<Pools>()
process.on('message', async (message: AloneMessage) => {
  if (message.kind === 'settings') return made.resolve(await open(message.given))
  const pools = await made.promise
  if (message.kind === 'abort') return pools.abort(message.id, message.attempt, message.reason)
  answer({ kind: 'begun' })
  const outcome = await pools.run(message.queue, message.pool, message.job)
  // A thread that died in this process had no other job in it, either.
  answer({
    kind: 'ended',
    outcome: outcome.kind === 'crashed' ? { kind: 'crashed', among: 'nobody' } : outcome,
  })
})

type Given = (AloneMessage & { kind: 'settings' })['given']

async function open({ settings, databaseUrl, taskModules }: Given): Promise<Pools> {
  const [{ createLog }, { createChildPool }, { createPools }] = await Promise.all([
    import('../../tasks/log.ts'),
    import('../children/pool.ts'),
    import('../threads/pools.ts'),
  ])
  const log = await createLog(settings.logLevel, 'alone')
  return createPools({
    settings: { ...settings, workerThreads: 1 },
    databaseUrl,
    taskModules,
    log,
    children: createChildPool({ log, hidden: secretPaths(settings) }),
    onEvent: (event) => answer({ kind: 'event', event }),
    onSpan: (span) => answer({ kind: 'span', span }),
  })
}

function answer(what: AloneAnswer): void {
  // Errors are ignored: when the worker is gone, this process ends with it.
  process.send?.(what, undefined, undefined, () => {})
}
