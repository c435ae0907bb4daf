import { enableCodeCache } from './code-cache.ts'

enableCodeCache()
const { migrate } = await import('../sql/migrate.ts')
const { runCommand, printLine: say, withDatabase, withPool } = await import('./command.ts')
const { waitForDatabase: untilReached } = await import('./outage.ts')
const { loadSecretKey: secretKeyOf, settingsOrExit } = await import('./process.ts')
const { setupNotice } = await import('./accounts/tokens.ts')
const { countAdmins } = await import('../sql/accounts.ts')

// `npm run migrate`, the release step of a deployment: waits for the database and migrates it to the current schema. If
// there is no admin, it prints the setup link.
await runCommand(async () => {
  const log = { warn: say, info: say }
  const settings = settingsOrExit()
  await withDatabase(settings, async ({ directUrl }) => {
    const applied = await untilReached(log, () =>
      migrate(directUrl, { log: say, appRole: settings.databaseAppRole }),
    )
    say(applied.length === 0 ? 'Nothing to migrate' : `Migrated: ${applied.join(', ')}`)
    const { admins } = await withPool(settings, directUrl, 'release', (db) => db.one(countAdmins()))
    if (admins === 0) say(setupNotice(settings.publicBaseUrl, secretKeyOf(settings)))
  })
})
