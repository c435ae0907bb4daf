import { enableCodeCache } from './platform/code-cache.ts'

enableCodeCache()
const { migrate } = await import('../sql/server/migrate.ts')
const { runCommand, printLine, withDatabase, withPool } = await import('./platform/command.ts')
const { waitForDatabase } = await import('./platform/outage.ts')
const { loadSecretKeys, loadSettingsOrExit } = await import('./platform/process.ts')
const { MacKeys } = await import('./platform/keys.ts')
const { formatSetupNotice } = await import('./accounts/tokens.ts')
const { countAdmins } = await import('../sql/accounts/accounts.ts')

// `npm run migrate`, the release step of a deployment: waits for the database and migrates it to the current schema. If
// there is no admin, it prints the setup link.
await runCommand(async () => {
  const log = { warn: printLine, info: printLine }
  const settings = loadSettingsOrExit()
  await withDatabase(settings, async ({ directUrl }) => {
    const applied = await waitForDatabase(log, () =>
      migrate(directUrl, { log: printLine, appRole: settings.databaseAppRole }),
    )
    printLine(applied.length === 0 ? 'Nothing to migrate' : `Migrated: ${applied.join(', ')}`)
    const { admins } = await withPool(settings, directUrl, 'release', (db) => db.one(countAdmins()))
    const tokens = new MacKeys(loadSecretKeys(settings))
    if (admins === 0) printLine(formatSetupNotice(settings.publicBaseUrl, { tokens }))
  })
})
