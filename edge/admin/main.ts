import { enableCodeCache } from '../../tasks/platform/code-cache.ts'

enableCodeCache()
const { runCommand, printLine, withQueries } = await import('../../tasks/platform/command.ts')
const { loadSettingsOrExit } = await import('../../tasks/platform/process.ts')
const { runAdmin } = await import('./commands.ts')

// Entry point of `npm run admin -- COMMAND`.
await runCommand(async () => {
  const settings = loadSettingsOrExit()
  await withQueries(settings, 'admin', async (db) => {
    for (const line of await runAdmin(process.argv.slice(2), db, settings, printLine)) printLine(line)
  })
})
