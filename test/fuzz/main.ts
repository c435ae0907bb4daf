import { parseArgs } from 'node:util'

/**
 * `npm run fuzz [-- --requests N --seed S --only TEXT]` sends valid and broken requests of every operation to a running
 * service. `--only` selects the operations whose method and path contain TEXT. It runs `test/long/fuzz.test.ts` with
 * these values.
 */

const { values } = parseArgs({
  options: {
    requests: { type: 'string', default: '20000' },
    seed: { type: 'string' },
    only: { type: 'string', default: '' },
  },
})
process.env.FUZZ_REQUESTS = values.requests
process.env.FUZZ_ONLY = values.only
if (values.seed !== undefined) process.env.TEST_SEED = values.seed
process.argv.splice(2, process.argv.length, '--depth', 'long', 'test/long/fuzz.test.ts')
await import('../run.ts')
