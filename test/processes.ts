import { spawn } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { FailedTest } from './reporter.ts'

/** Runs test files in a few processes of node:test. Each process runs one file after another (`runner.ts`). */

export interface TestRun {
  readonly files: readonly string[]
  /** An empty folder for the run's files. */
  readonly folder: string
  readonly processes: number
  readonly env: Readonly<Record<string, string>>
  /** Options of node:test. */
  readonly flags?: readonly string[]
  /** True to compile the code with tsx; false to let Node strip types, as in production. Default true. */
  readonly isCompiled?: boolean
}

export interface RunResult {
  /** 0 if every test passed. */
  readonly code: number
  /** Failed tests. May be empty even if `code` is not 0, if node:test itself ended early. */
  readonly failed: readonly FailedTest[]
}

// If more files fail, they are not flaky, and a rerun would only delay the result.
const MAX_RERUN_FILES = 5

/** Runs the files and returns the result. */
export async function runFiles(run: TestRun): Promise<RunResult> {
  const failures = join(run.folder, 'failures.json')
  const child = spawn(
    process.execPath,
    [
      '--disable-warning=ExperimentalWarning',
      // Tests create many short-lived objects; the default of 16 MB costs 4 % more CPU.
      '--max-semi-space-size=64',
      '--test',
      `--test-concurrency=${run.processes}`,
      // Repeats the failed tests and their errors at the end, where a truncated log still shows them.
      `--test-reporter=${import.meta.resolve('./reporter.ts')}`,
      ...(run.flags ?? []),
      ...writeEntries(run),
    ],
    {
      stdio: 'inherit',
      env: { ...process.env, NODE_ENV: 'test', TMPDIR: run.folder, ...run.env, TEST_FAILURES: failures },
    },
  )
  const stop = (signal: NodeJS.Signals): void => void child.kill(signal)
  process.on('SIGINT', stop).on('SIGTERM', stop)
  const code = await new Promise<number>((resolve) => child.on('exit', (status) => resolve(status ?? 1)))
  process.off('SIGINT', stop).off('SIGTERM', stop)
  const failed: FailedTest[] = existsSync(failures) ? JSON.parse(readFileSync(failures, 'utf8')) : []
  const taken = readdirSync(join(run.folder, 'claims')).length
  if (code === 0 && taken < run.files.length) {
    console.log(`Only ${taken} of ${run.files.length} test files ran`)
    return { code: 1, failed }
  }
  return { code, failed }
}

/**
 * Runs the files, then reruns failed ones one after another. If the rerun passes, the failures were flaky: they are
 * printed, and the run succeeds.
 */
export async function runWithRerun(run: TestRun): Promise<number> {
  const first = await runFiles(run)
  const suspects = [...new Set(first.failed.map(({ file }) => file))]
  const canRerun = suspects.length > 0 && suspects.length <= MAX_RERUN_FILES
  if (first.code === 0 || !canRerun || !suspects.every((file) => run.files.includes(file))) return first.code
  console.log(`Failed, rerunning alone: ${suspects.join(', ')}`)
  const folder = join(run.folder, 'second')
  mkdirSync(folder)
  const second = await runFiles({ ...run, files: suspects, folder, processes: 1 })
  if (second.code !== 0) return second.code
  console.log(
    `${first.failed.length} flaky: ${first.failed.map(({ file, name }) => `${file}: ${name}`).join('; ')}`,
  )
  return 0
}

/**
 * Writes a module for each process of node:test. The module loads tsx itself, because threads would inherit a flag but
 * must run code as in production. The output of tsx is cached outside the run's folder, for the next run.
 */
function writeEntries({ files, folder, processes, isCompiled = true }: TestRun): string[] {
  const tsx = JSON.stringify(import.meta.resolve('tsx/esm/api'))
  const cacheFolder = JSON.stringify(tmpdir())
  const runner = JSON.stringify(new URL('runner.ts', import.meta.url))
  for (const name of ['claims', 'processes', 'profile']) mkdirSync(join(folder, name))
  const lines = [
    ...(isCompiled
      ? [`process.env.TMPDIR = ${cacheFolder}`, `const { register } = await import(${tsx})`, 'register()']
      : []),
    `process.env.TMPDIR = ${JSON.stringify(folder)}`,
    `const { runFiles } = await import(${runner})`,
    `await runFiles(${JSON.stringify(files)}, ${JSON.stringify(folder)})`,
  ]
  return Array.from({ length: Math.min(processes, files.length) }, (_, n) => {
    const entry = join(folder, 'processes', `${n + 1}.mjs`)
    writeFileSync(entry, `${lines.join('\n')}\n`)
    return entry
  })
}
