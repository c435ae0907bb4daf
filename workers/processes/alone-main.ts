/** A process for jobs that run with nothing beside them, one at a time, see `alone.ts`. */
import { writeFileSync } from 'node:fs'
import { keepCode } from '../../tasks/code-cache.ts'
import type { Pools } from '../threads/pools.ts'
import type { AloneAnswer, AloneMessage } from './alone.ts'

keepCode()
try {
  // When memory runs out, this is what the kernel ends first.
  if (process.platform === 'linux') writeFileSync('/proc/self/oom_score_adj', '1000')
} catch {
  // A container that does not let it is to say itself what goes first.
}
// It has nobody to tell any more.
process.on('disconnect', () => process.exit())
const made = Promise.withResolvers<Pools>()
process.on('message', async (message: AloneMessage) => {
  if (message.kind === 'settings') return made.resolve(await open(message.given))
  const pools = await made.promise
  if (message.kind === 'abort') return pools.abort(message.id, message.attempt, message.reason)
  answer({ kind: 'begun' })
  const outcome = await pools.run(message.queue, message.pool, message.job)
  // A thread that has died in here had nothing beside it, either.
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
    children: createChildPool({ log }),
    onEvent: (event) => answer({ kind: 'event', event }),
  })
}

function answer(what: AloneAnswer): void {
  // A worker that is gone hears nothing more, and this process ends with it.
  process.send?.(what, undefined, undefined, () => {})
}
