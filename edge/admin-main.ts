import { createDatabase } from '../sql/db.ts'
import { runCommand, say, withDatabase } from '../tasks/command.ts'
import { settingsOrExit } from '../tasks/process.ts'
import { runAdmin } from './commands.ts'

// `npm run admin -- COMMAND`
await runCommand(async () => {
  const settings = settingsOrExit()
  await withDatabase(settings, async ({ url }) => {
    const applicationName = `${settings.projectName}-admin`
    const { checked: validateRows, databasePooled: pooled } = settings
    const db = createDatabase({ url, applicationName, size: 2, validateRows, pooled })
    try {
      for (const line of await runAdmin(process.argv.slice(2), db, settings.workerMaxTries, say)) say(line)
    } finally {
      await db.close()
    }
  })
})
