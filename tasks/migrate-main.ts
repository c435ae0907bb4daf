import { keepCode } from './code-cache.ts'

keepCode()
const { migrate } = await import('../sql/migrate.ts')
const { runCommand, say, withDatabase } = await import('./command.ts')
const { untilReached } = await import('./outage.ts')
const { settingsOrExit } = await import('./process.ts')

// `npm run migrate`, the release step of a deployment: waits for the database, and brings it to the current schema.
await runCommand(async () => {
  const log = { warn: say, info: say }
  const applied = await withDatabase(settingsOrExit(), ({ directUrl }) =>
    untilReached(log, () => migrate(directUrl, { log: say })),
  )
  say(applied.length === 0 ? 'Nothing to migrate' : `Migrated: ${applied.join(', ')}`)
})
