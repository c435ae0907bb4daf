import { enableCodeCache } from '../../tasks/platform/code-cache.ts'

enableCodeCache()
const { runCommand, printLine, UsageError } = await import('../../tasks/platform/command.ts')
const { runChecks: examine } = await import('./checks.ts')
const { formatReport } = await import('./findings.ts')

// `npm run doctor`: checks everything that the service needs. Exits with status 1 if there is a problem.
await runCommand(async () => {
  if (process.argv.length > 2) throw new UsageError('Usage: npm run doctor')
  const findings = await examine()
  for (const line of formatReport(findings)) printLine(line)
  if (findings.some(({ level }) => level === 'problem')) process.exitCode = 1
})
