/** The process of a job that runs with nothing beside it, see `alone.ts`. */
import { writeFileSync } from 'node:fs'
import { keepCode } from '../tasks/code-cache.ts'
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
const told = Promise.withResolvers<AloneMessage & { kind: 'run' }>()
const aborted = Promise.withResolvers<AloneMessage & { kind: 'abort' }>()
process.on('message', (message: AloneMessage) => {
  if (message.kind === 'run') told.resolve(message)
  else aborted.resolve(message)
})
const answer = (what: AloneAnswer, then = (): void => {}): void => {
  process.send?.(what, then)
}

const [{ createLog }, { createChildPool }, { createPools }] = await Promise.all([
  import('../tasks/log.ts'),
  import('./children/pool.ts'),
  import('./pools.ts'),
])
const { settings, databaseUrl, taskModules, queue, pool, job } = await told.promise
const log = await createLog(settings.logLevel, 'alone')
const pools = createPools({
  settings: { ...settings, workerThreads: 1 },
  databaseUrl,
  taskModules,
  log,
  children: createChildPool({ log }),
  onEvent: (event) => answer({ kind: 'event', event }),
})
void aborted.promise.then(({ reason }) => pools.abort(job.id, job.attempt, reason))
answer({ kind: 'begun' })
const outcome = await pools.run(queue, pool, job)
// A thread that has died in here had nothing beside it, either.
answer(
  { kind: 'ended', outcome: outcome.kind === 'crashed' ? { kind: 'crashed', among: 'nobody' } : outcome },
  () => process.exit(),
)
