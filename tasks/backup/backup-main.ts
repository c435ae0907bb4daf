import { enableCodeCache } from '../platform/code-cache.ts'

enableCodeCache()
const { runCommand, printLine, UsageError, withDatabase } = await import('../platform/command.ts')
const { loadSettingsOrExit } = await import('../platform/process.ts')
const { backUp } = await import('./backup.ts')

// Usage: `npm run backup FILE`
await runCommand(async () => {
  const [file, ...more] = process.argv.slice(2)
  if (file === undefined || more.length > 0) throw new UsageError('Usage: npm run backup FILE')
  const settings = loadSettingsOrExit()
  const { tables, rows, files, missing, inBuckets } = await withDatabase(settings, (database) =>
    backUp(settings, database, file),
  )
  printLine(`Wrote ${file}: ${tables} tables with ${rows} rows, ${files} files`)
  if (missing > 0) printLine(`${missing} files are missing from their store`)
  for (const { store, count, bytes } of inBuckets)
    printLine(`Not included: ${count} files (${bytes} bytes) in ${store}. Back up this bucket separately.`)
  printLine(
    'SECRET_KEY is not included either. Without it, sealed secrets are lost: see "Lost key" in deploy/operating.md.',
  )
})
