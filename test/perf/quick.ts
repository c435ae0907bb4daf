/** Environment variables of `npm run bench -- NAME… --quick`: those of all benchmarks, and those of each. */

const COMMON = {
  BENCH_ROUNDS: '1',
  BENCH_PATIENCE_SECONDS: '0.3',
  BENCH_RETRIES: '0',
  BENCH_SAMPLES: '20',
  BENCH_LOAD_MS: '1000',
  BENCH_POOL_SIZES: '8',
  // In `COMMON`, because `workers-http` imports `jobs`.
  BENCH_SHARE: '0.1',
}
const SIZES: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  starvation: { BENCH_WAITING: '20000' },
  sse: { BENCH_STREAMS: '1000' },
  fanout: { BENCH_STREAMS: '2000', BENCH_SECONDS: '2' },
  recovery: { BENCH_KILLS: '3' },
  snapshot: { BENCH_WARM_UP_SECONDS: '3', BENCH_BEFORE_SECONDS: '9', BENCH_HELD_SECONDS: '8' },
  extract: { BENCH_PAGES: '250', BENCH_SCANS: '1' },
  children: { BENCH_PAGES: '100', BENCH_IDLE_SECONDS: '1' },
  kills: { BENCH_ROUNDS: '3' },
  auth: { BENCH_SAMPLES: '60' },
  chat: { BENCH_STREAMS: '100', BENCH_OPEN_STREAMS: '50' },
  'chat-kills': { BENCH_STREAMS: '40' },
  sends: { BENCH_SENDS: '10', BENCH_KILLS: '1' },
  reindex: { BENCH_FILES: '200', BENCH_RUNS: '5', BENCH_SAMPLES: '100' },
  transactions: { BENCH_IDLE_SECONDS: '1', BENCH_JOBS: '200', BENCH_LIMITS: '1' },
  'workers-http': {
    BENCH_PARTS: 'rate,latency,claims',
    BENCH_JOBS: '12000',
    BENCH_CLAIMS: '200',
    BENCH_SECONDS: '2',
  },
  growth: { BENCH_SHARES: '0.1,0.3', BENCH_CALLS: '/api/v1/documents' },
}

/** Sets the unset variables of a quick benchmark, before its module reads them. The result unsets them. */
export function setQuickSizes(name: string): () => void {
  const unset = Object.entries({ ...COMMON, ...SIZES[name] }).filter(
    ([key]) => process.env[key] === undefined,
  )
  for (const [key, value] of unset) process.env[key] = value
  return () => {
    for (const [key] of unset) delete process.env[key]
  }
}
