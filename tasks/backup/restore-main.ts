import { enableCodeCache } from '../platform/code-cache.ts'

enableCodeCache()
const { runCommand, printLine, UsageError, withDatabase } = await import('../platform/command.ts')
const { loadSettingsOrExit } = await import('../platform/process.ts')
const { restore } = await import('./restore.ts')

// Usage: `npm run restore FILE`
await runCommand(async () => {
  const [file, ...more] = process.argv.slice(2)
  if (file === undefined || more.length > 0) throw new UsageError('Usage: npm run restore FILE')
  const settings = loadSettingsOrExit()
  const { createdAt, tables, rows, files, missing } = await withDatabase(settings, (database) =>
    restore(settings, database, file),
  )
  printLine(`Restored the state of ${createdAt}: ${tables} tables with ${rows} rows, ${files} files`)
  if (missing > 0) printLine(`${missing} files were already missing when the backup was created`)
})
