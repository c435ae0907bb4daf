import { runCommand, say, withQueries } from '../tasks/command.ts'
import { settingsOrExit } from '../tasks/process.ts'
import { runAdmin } from './commands.ts'

// `npm run admin -- COMMAND`
await runCommand(async () => {
  const settings = settingsOrExit()
  await withQueries(settings, 'admin', async (db) => {
    for (const line of await runAdmin(process.argv.slice(2), db, settings.workerMaxTries, say)) say(line)
  })
})
