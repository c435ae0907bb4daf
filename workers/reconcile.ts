import type { TaskContext } from '../tasks/context.ts'
import { enableCodeCache } from '../tasks/platform/code-cache.ts'

enableCodeCache()
const { createDatabase } = await import('../sql/db.ts')
const { uuidv7 } = await import('../sql/ids.ts')
const { listSecretPaths } = await import('../tasks/platform/settings/environment.ts')
const { createLog } = await import('../tasks/platform/log.ts')
const { reconcilePayments } = await import('../tasks/payments/reconcile.task.ts')
const { loadSettingsOrExit } = await import('../tasks/platform/process.ts')
const { createChildPool } = await import('./children/pool.ts')
const { createProviders } = await import('./providers/index.ts')

// `npm run reconcile`: runs the scheduled reconciliation of payments immediately. It may run next to workers, which
// apply the ingested events.
const settings = loadSettingsOrExit()
if (settings.databaseUrl === undefined) {
  process.stderr.write('DATABASE_URL: required\n')
  process.exit(2)
}
const db = createDatabase({
  url: settings.databaseUrl,
  applicationName: `${settings.projectName}-reconcile`,
  size: 2,
  validateRows: settings.validateSchemas,
  pooled: settings.databasePooled,
})
const log = await createLog(settings.logLevel, 'reconcile')
const context: Omit<TaskContext, 'blobs' | 'keys'> = {
  // This is not a job in the database, so no worker can take it over.
  job: { id: uuidv7(), name: 'payments.reconcile', attempt: 1, ownerId: null, requestId: null },
  dependencies: async () => [],
  db,
  settings,
  providers: createProviders(
    settings,
    createChildPool({ log, hidden: listSecretPaths(settings) }),
    db,
  )({ owner: 0, isUrgent: false }),
  log,
  signal: new AbortController().signal,
  reportProgress: (label) => process.stderr.write(`${label}\n`),
  emit: () => {},
  retryJobs: () => Promise.resolve([]),
  runFenced: (work) => db.transaction(work),
}
try {
  const { missed, left, settled } = await reconcilePayments.run(context as TaskContext, {})
  process.stdout.write(`Events ingested: ${missed}; ingested again: ${left}; refunds looked up: ${settled}\n`)
} catch (error) {
  process.stderr.write(`${error instanceof Error ? error.message : error}\n`)
  process.exitCode = 1
} finally {
  await db.close()
}
