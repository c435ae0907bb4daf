import { parseArgs } from 'node:util'
import { COUNTING_SETTINGS } from './growth/statements.ts'
import { setQuickSizes } from './quick.ts'
import { compareReports, type Measured, publishBenchmark, publishReport, readReport } from './report.ts'
import { type Stack, startStack } from './stack.ts'

/**
 * `npm run bench -- NAME…` runs benchmarks, prints a table for each, and writes `bench-results/NAME.json`. `--quick` runs
 * one small round of each. `--against FILE` compares them with an earlier `report.json`.
 */

const BENCHMARKS: Readonly<Record<string, () => Promise<(stack: Stack) => Promise<Measured>>>> = {
  reads: async () => (await import('./reads.ts')).measureReads,
  jobs: async () => (await import('./jobs.ts')).measureJobs,
  'slow-reads': async () => (await import('./slow-reads.ts')).measureSlowReads,
  enqueue: async () => (await import('./enqueue.ts')).enqueue,
  starvation: async () => (await import('./starvation.ts')).measureStarvation,
  latency: async () => (await import('./latency.ts')).measureLatency,
  sse: async () => (await import('./sse.ts')).measureStreams,
  fanout: async () => (await import('./fanout.ts')).measureFanout,
  recovery: async () => (await import('./recovery.ts')).measureRecovery,
  failover: async () => (await import('./failover.ts')).measureFailover,
  snapshot: async () => (await import('./snapshot.ts')).measureSnapshot,
  webhooks: async () => (await import('./webhooks.ts')).measureWebhooks,
  extract: async () => (await import('./extract.ts')).extract,
  children: async () => (await import('./children-cost.ts')).measureChildren,
  kills: async () => (await import('./kills.ts')).measureKills,
  corpus: async () => (await import('./corpus.ts')).measureCorpus,
  upload: async () => (await import('./upload.ts')).upload,
  auth: async () => (await import('./auth.ts')).measureAuth,
  chat: async () => (await import('./chat.ts')).measureChat,
  'chat-kills': async () => (await import('./chat-kills.ts')).measureChatKills,
  sends: async () => (await import('./sends.ts')).measureSends,
  blog: async () => (await import('./blog.ts')).measureBlog,
  retrieval: async () => (await import('./retrieval.ts')).measureRetrieval,
  reindex: async () => (await import('./reindex.ts')).reindex,
  import: async () => (await import('./import.ts')).measureImport,
  pages: async () => (await import('./pages.ts')).measurePages,
  transactions: async () => (await import('./transactions.ts')).measureTransactions,
  'workers-http': async () => (await import('./workers-http.ts')).measureHttpWorkers,
  growth: async () => (await import('./growth.ts')).measureGrowth,
}
/** PostgreSQL settings of the benchmarks that need special ones. */
const SERVER_SETTINGS: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  // Kills its server, so other benchmarks need another one.
  kills: {},
  growth: COUNTING_SETTINGS,
  transactions: COUNTING_SETTINGS,
  'workers-http': COUNTING_SETTINGS,
}

const { positionals: all, values: flags } = parseArgs({
  allowPositionals: true,
  options: { quick: { type: 'boolean', default: false }, against: { type: 'string' } },
})
// Benchmarks whose next argument is a folder, not the name of a benchmark.
const FOLDER_BENCHMARKS = ['corpus', 'import', 'retrieval']
const given = FOLDER_BENCHMARKS.includes(all[0] ?? '') ? all.slice(0, 1) : all
const names = given.includes('all')
  ? Object.keys(BENCHMARKS).filter((name) => !FOLDER_BENCHMARKS.includes(name))
  : given
if (names.length === 0 || names.some((name) => BENCHMARKS[name] === undefined)) {
  process.stderr.write(
    `Usage: npm run bench -- NAME… [--quick] [--against FILE]; one of ${Object.keys(BENCHMARKS).join(', ')} or all\n`,
  )
  process.exit(2)
}

// The run writes another report, maybe to the same file.
const earlier = flags.against === undefined ? null : readReport(flags.against)
let stack = null as Stack | null
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, () => {
    void Promise.resolve(stack?.stop()).finally(() => process.exit(130))
  })
}

let met = true
let settings: (typeof SERVER_SETTINGS)[string] | undefined
const completed: string[] = []

async function runBenchmark(name: string): Promise<void> {
  const startedAt = performance.now()
  const unsetSizes = flags.quick ? setQuickSizes(name) : () => {}
  try {
    const run = await BENCHMARKS[name]!()
    if (flags.quick && stack !== null && settings === SERVER_SETTINGS[name]) await stack.clear()
    else {
      await stack?.stop()
      settings = SERVER_SETTINGS[name]
      stack = await startStack(settings)
    }
    const measured = await run(stack)
    const seconds = Math.round((performance.now() - startedAt) / 1000)
    met = publishBenchmark(name, measured, stack.postgres, { quick: flags.quick, seconds }) && met
    completed.push(name)
  } finally {
    unsetSizes()
  }
}

try {
  for (const name of names)
    await runBenchmark(name).catch((error) => {
      // The others take an hour, so they run nevertheless.
      process.stderr.write(`${name} failed: ${error.stack}\n`)
      met = false
    })
} finally {
  await stack?.stop()
}
if (earlier !== null) process.stdout.write(compareReports(earlier, completed))
if (completed.length > 1) process.stdout.write(`\nThe report is in ${publishReport(completed)}\n`)
process.exit(met ? 0 : 1)
