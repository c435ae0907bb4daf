import { migrate } from '../sql/migrate.ts'
import { runCommand, say, withDatabase } from './command.ts'
import { untilReached } from './outage.ts'
import { settingsOrExit } from './process.ts'

// `npm run migrate`, the release step of a deployment: waits for the database, and brings it to the current schema.
await runCommand(async () => {
  const log = { warn: say, info: say }
  const applied = await withDatabase(settingsOrExit(), ({ directUrl }) =>
    untilReached(log, () => migrate(directUrl, { log: say })),
  )
  say(applied.length === 0 ? 'Nothing to migrate' : `Migrated: ${applied.join(', ')}`)
})
