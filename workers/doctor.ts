import { keepCode } from '../tasks/code-cache.ts'

keepCode()
const { runCommand, say, UsageError } = await import('../tasks/command.ts')
const { examine } = await import('./doctor/examine.ts')
const { report } = await import('./doctor/findings.ts')

// `npm run doctor`: looks at everything that a start and the work need. Status 1 when something is wrong.
await runCommand(async () => {
  if (process.argv.length > 2) throw new UsageError('Usage: npm run doctor')
  const findings = await examine()
  for (const line of report(findings)) say(line)
  if (findings.some(({ level }) => level === 'problem')) process.exitCode = 1
})
