import { keepCode } from '../code-cache.ts'

keepCode()
const { runCommand, say, UsageError, withDatabase } = await import('../command.ts')
const { settingsOrExit } = await import('../process.ts')
const { backUp } = await import('./backup.ts')

// `npm run backup FILE`
await runCommand(async () => {
  const [file, ...more] = process.argv.slice(2)
  if (file === undefined || more.length > 0) throw new UsageError('Usage: npm run backup FILE')
  const settings = settingsOrExit()
  const { tables, rows, files, missing, elsewhere } = await withDatabase(settings, (database) =>
    backUp(settings, database, file),
  )
  say(`Wrote ${file}: ${tables} tables with ${rows} rows, ${files} files`)
  if (missing > 0) say(`${missing} files were not in their store`)
  for (const { store, count, bytes } of elsewhere)
    say(`Not in it: ${count} files (${bytes} bytes) in ${store}. Back up the bucket separately.`)
  say(
    'SECRET_KEY is not in it either. With another one, everybody must sign in again and pending invites are void.',
  )
})
